"""The shared parts of scripts that run servers and measure them: start, wait, stop, summarise, report.

A script finds the package by one line, whatever its working folder is:

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab/tools"))

It needs nothing but Python 3.11 and Linux. If something cannot go on, its functions end the script
with a message (`reports.fail`), so that the script's `finally` blocks run.
"""
