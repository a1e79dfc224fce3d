"""How a report is set as text: widths, columns, formats, numbers and prose; it knows no run."""
