"""What observations are as a kind of record."""

from shared.conversation.observations import index_document
from shared.conversation.observations.observation import Observation
from shared.conversation.observations.table import observation
from shared.foundation.content import Subject
from shared.foundation.stages import RecordKind
from shared.records.record_type import RecordType

OBSERVATION = RecordType(
    kind=RecordKind.OBSERVATION,
    table=observation,
    from_row=Observation.from_row,
    search_text=index_document.keyword_text,
    document=index_document.document,
    subjects=(Subject.SESSION,),
    fixed_version=index_document.VERSION,
)
