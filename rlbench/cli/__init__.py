"""The command line. Declarations only: whatever is heavy is imported in the body that needs it."""

from __future__ import annotations

import click

from rlbench import __version__
from rlbench.cli.compare import compare
from rlbench.cli.components import list_, plugins_, show
from rlbench.cli.effects import effects
from rlbench.cli.gate import gate
from rlbench.cli.import_ import import_
from rlbench.cli.plan import plan
from rlbench.cli.plot import plot
from rlbench.cli.race import race
from rlbench.cli.report import report
from rlbench.cli.results import export, merge, rm, why
from rlbench.cli.run import run
from rlbench.cli.table import table
from rlbench.report.text.terminal import Commands, open_what_is_closed, write_whatever_the_encoding


def main() -> None:
    """Entry point of the ``rlbench`` command."""
    open_what_is_closed()
    write_whatever_the_encoding()
    cli(prog_name="rlbench")


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  rlbench run -e gae -e group -s 0-4
  rlbench run -l clip -l clip:eps=0.1 --set lr=3e-4,1e-3
  rlbench run -l my_loss --plugin my_loss.py
  rlbench table --format github
  rlbench compare --baseline group+clip
  rlbench effects
  rlbench report --baseline group+clip
  rlbench show loss clip""",
)
@click.version_option(__version__, "-V", "--version", message="rlbench %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Compare pieces of RL fine-tuning on small language models: fair, seeded grids."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


_LISTED = (
    run,
    plan,
    race,
    table,
    compare,
    effects,
    gate,
    plot,
    report,
    export,
    import_,
    merge,
    rm,
    why,
    list_,
    show,
    plugins_,
)

for _command in _LISTED:
    cli.add_command(_command)
