"""What playbooks are as a kind of record. Only promoted ones are searchable: nobody else knows the others."""

from shared.foundation.content import Subject
from shared.foundation.stages import RecordKind
from shared.memory.playbooks import index_document
from shared.memory.playbooks.playbook import Playbook
from shared.memory.playbooks.table import playbook
from shared.records.record_type import RecordType

PLAYBOOK = RecordType(
    kind=RecordKind.PLAYBOOK,
    table=playbook,
    from_row=Playbook.from_row,
    document=index_document.document,
    subjects=(Subject.PLAYBOOK, Subject.SESSION, Subject.USER, Subject.AGENT),
    searchable=playbook.c.promoted,
    fixed_version=index_document.VERSION,
)
