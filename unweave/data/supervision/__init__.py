"""Kinds of supervision: what a method may learn from in addition to images. Each kind is a class in its own file."""

from unweave.data.supervision.changed_pairs import ChangedPairs
from unweave.data.supervision.clips import Clips
from unweave.data.supervision.file_pairs import FilePairs
from unweave.data.supervision.groups import Groups
from unweave.data.supervision.kind import Supervision
from unweave.data.supervision.labels import Labels
from unweave.data.supervision.match import Match
from unweave.data.supervision.no_supervision import NoSupervision
from unweave.data.supervision.rank import Rank
from unweave.data.supervision.shared_pairs import SharedPairs
from unweave.data.supervision.triplets import Triplets

SUPERVISION_KINDS: tuple[type[Supervision], ...] = (
    NoSupervision,
    Labels,
    ChangedPairs,
    SharedPairs,
    FilePairs,
    Groups,
    Match,
    Triplets,
    Rank,
    Clips,
)
