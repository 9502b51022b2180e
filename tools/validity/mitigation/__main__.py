"""Does `bbnli-audit augment` lower a bias, and at what cost? Fine-tunes with and without; writes docs/mitigation.md.

    python -m tools.validity.mitigation           the small plan, in minutes: one seed, page in build/validity/small
    python -m tools.validity.mitigation --full    all bases, corpora and seeds: about an hour; needs BBNLI_SHARED
    python -m tools.validity.mitigation --page    only the page, from what was done so far

Both plans read plain pairs of the shared folder. What was done is not done again: stop it and start it again.
Models with a record in tools/validity/mitigation/records are done. The small plan has records of its own.
"""

import argparse
import sys
from functools import cache

from bbnli_audit import AuditError
from tools.validity.carry_out import SMALL
from tools.validity.examples import Example
from tools.validity.mitigation.carry_out import FOLDER, carry_out, is_finished
from tools.validity.mitigation.plan import SIZES, full_plan, small_plan


@cache
def _plain() -> tuple[list[Example], list[Example]]:
    from tools.validity.plant import plain_examples

    return plain_examples()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all models, not the small plan")
    parser.add_argument("--base", choices=list(SIZES), help="only the models of this checkpoint")
    parser.add_argument("--most", type=int, help="stop after so many models that were not finished before")
    parser.add_argument("--page", action="store_true", help="write the page and run nothing")
    options = parser.parse_args()
    try:
        from tools.validity.mitigation.page import PAGE, write_page
        from tools.validity.mitigation.records import RECORDS, keep_records, read_records

        is_small = not (options.full or options.page)
        build, page = (SMALL / "mitigation", SMALL / "mitigation.md") if is_small else (FOLDER, PAGE)
        records = build / "records" if is_small else RECORDS
        plan = small_plan() if is_small else [] if options.page else full_plan()
        kept = {record.of.record for record in read_records(plan, records)}
        chosen = [each for each in plan if options.base in (None, each.base) and each.record not in kept]
        left = [each for each in chosen if not is_finished(build / each.name)]
        keep_records(chosen, build, records)
        for candidate in left[: options.most]:
            carry_out(candidate, _plain, build)
            keep_records([each for each in chosen if each.record == candidate.record], build, records)
        print(f"Wrote {write_page(records, page)}.")
    except AuditError as exc:
        print(f"ERROR: {exc}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
