"""`make validity`: plants biases in real weights, audits them, and writes docs/validity.md.

    python -m tools.validity              minutes, the demo checkpoint only; the page is in build/validity/small
    python -m tools.validity --full       everything: hours; needs the shared folder (BBNLI_SHARED)
    python -m tools.validity --full --base demo    only the runs of one checkpoint
    python -m tools.validity --page       only the page, from what was done so far

What was done is not done again: stop it at any time and start it again. Runs with a record in tools/validity/records
are done, except for the small plan, which has records of its own.
"""

import argparse
import sys

from bbnli_audit import AuditError
from tools.validity.carry_out import BUILD, MAIN, SECOND, SMALL, carry_out
from tools.validity.plan import BASES, full_plan, small_plan
from tools.validity.records import RECORDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all runs, not the small plan")
    parser.add_argument("--base", choices=list(BASES), help="only the runs of this checkpoint")
    parser.add_argument("--second", action="store_true", help="also the audits for the convergence of benchmarks")
    parser.add_argument("--page", action="store_true", help="write the page and run nothing")
    options = parser.parse_args()
    audits = (*MAIN, *SECOND) if options.second else MAIN
    is_small = not (options.full or options.page)
    build, records = (SMALL, SMALL / "records") if is_small else (BUILD, RECORDS)
    try:
        plan = small_plan() if is_small else [] if options.page else full_plan()
        for run in plan:
            if options.base in (None, run.base):
                carry_out(run, audits, build, records)
        from tools.validity.page import write_page

        page = (SMALL / "validity.md", SMALL / "images" / "validity.svg") if is_small else ()
        print(f"Wrote {write_page(records, *page)}.")
    except AuditError as exc:
        print(f"ERROR: {exc}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
