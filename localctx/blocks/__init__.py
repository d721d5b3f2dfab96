"""Streaming text to blocks: spans of a target token count, cut where a reader would cut.

    stream ─► boundaries (section, paragraph, sentence) ─► pieces (the over-long) ─► packing ─► Block

Blocks join back to the text exactly, never exceed their cap, and keep the token ids they were counted by.
"""

from __future__ import annotations

from localctx.blocks.boundaries import Rank
from localctx.blocks.entities import count_entities
from localctx.blocks.profile import Embed
from localctx.blocks.rows import table_header
from localctx.blocks.seams import SeamDifference, seam_difference
from localctx.blocks.segments import Segment, SpellingTokenizer
from localctx.blocks.sentence_units import sentence_units
from localctx.blocks.split import FIXED, BlockPolicy, split

__all__ = [
    "FIXED",
    "BlockPolicy",
    "Embed",
    "Rank",
    "SeamDifference",
    "Segment",
    "SpellingTokenizer",
    "count_entities",
    "seam_difference",
    "sentence_units",
    "split",
    "table_header",
]
