"""Many runs: what to run, who runs it, where results lie."""
