"""`make validity`: plants biases in real weights, audits them, and writes docs/validity.md.

    python -m tools.validity              the small plan: minutes, the demo checkpoint only
    python -m tools.validity --full       everything: hours; needs the shared folder (BBNLI_SHARED)
    python -m tools.validity --full --base demo    only the runs of one checkpoint
    python -m tools.validity --page       only the page, from what was done so far

What was done is not done again: stop it at any time and start it again.
"""

import argparse
import sys

from bbnli_audit import AuditError
from tools.validity.carry_out import MAIN, SECOND, carry_out
from tools.validity.plan import BASES, full_plan, small_plan


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all runs, not the small plan")
    parser.add_argument("--base", choices=list(BASES), help="only the runs of this checkpoint")
    parser.add_argument("--second", action="store_true", help="also the audits for the convergence of benchmarks")
    parser.add_argument("--page", action="store_true", help="write the page and run nothing")
    options = parser.parse_args()
    audits = (*MAIN, *SECOND) if options.second else MAIN
    try:
        plan = [] if options.page else full_plan() if options.full else small_plan()
        for run in plan:
            if options.base in (None, run.base):
                carry_out(run, audits)
        from tools.validity.page import write_page

        print(f"Wrote {write_page()}.")
    except AuditError as exc:
        print(f"ERROR: {exc}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
