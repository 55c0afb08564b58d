"""Say who decided that a memory is stored, and which live memories say otherwise.

Two memories that contest each other name each other. Triggers keep both sides in step, whichever statement
writes one of them: so no way in which a memory leaves can forget its rival.
"""

from alembic import op
from sqlalchemy import Column, Text, text
from sqlalchemy.dialects.postgresql import ARRAY

revision = "a029"
down_revision = "a028"
branch_labels = None
depends_on = None

_DECISION = ("decided_by", "verdict", "judge_model")
_IS_OPEN = "archived_at IS NULL AND valid_until IS NULL"

# Rivals are locked: one that is archived meanwhile would otherwise stay named.
_KEEP_RIVALS = f"""
    CREATE FUNCTION keep_rivals() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.archived_at IS NOT NULL OR NEW.valid_until IS NOT NULL THEN
            NEW.contested_with = ARRAY[]\\:\\:text[];
            RETURN NEW;
        END IF;
        IF TG_OP = 'UPDATE' THEN
            IF NEW.content <> OLD.content THEN
                NEW.contested_with = ARRAY[]\\:\\:text[];
            END IF;
            IF NEW.contested_with <@ OLD.contested_with THEN
                RETURN NEW;
            END IF;
        END IF;
        NEW.contested_with = coalesce((SELECT array_agg(rival.id) FROM (
            SELECT id FROM memory
            WHERE tenant = NEW.tenant AND id = ANY (NEW.contested_with) AND id <> NEW.id
              AND agent_id = NEW.agent_id AND user_id IS NOT DISTINCT FROM NEW.user_id AND {_IS_OPEN}
            ORDER BY id FOR NO KEY UPDATE) rival), ARRAY[]\\:\\:text[]);
        RETURN NEW;
    END $$
"""
_MIRROR_RIVALS = """
    CREATE FUNCTION mirror_rivals() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        own text[] = ARRAY[]\\:\\:text[];
        former text[] = ARRAY[]\\:\\:text[];
    BEGIN
        IF TG_OP <> 'DELETE' THEN own = NEW.contested_with; END IF;
        IF TG_OP <> 'INSERT' THEN former = OLD.contested_with; END IF;
        UPDATE memory SET contested_with = array_remove(contested_with, OLD.id),
            content_version = content_version + 1
        WHERE tenant = OLD.tenant AND id = ANY (former) AND id <> ALL (own) AND OLD.id = ANY (contested_with);
        UPDATE memory SET contested_with = contested_with || NEW.id,
            content_version = content_version + 1
        WHERE tenant = NEW.tenant AND id = ANY (own) AND NEW.id <> ALL (contested_with);
        RETURN NULL;
    END $$
"""
_TRIGGERS = {
    "memory_keep_rivals": "BEFORE INSERT OR UPDATE ON memory FOR EACH ROW"
    " WHEN (NEW.contested_with <> '{}') EXECUTE FUNCTION keep_rivals()",
    "memory_mirror_inserted": "AFTER INSERT ON memory FOR EACH ROW"
    " WHEN (NEW.contested_with <> '{}') EXECUTE FUNCTION mirror_rivals()",
    "memory_mirror_updated": "AFTER UPDATE ON memory FOR EACH ROW"
    " WHEN (NEW.contested_with <> OLD.contested_with) EXECUTE FUNCTION mirror_rivals()",
    "memory_mirror_deleted": "AFTER DELETE ON memory FOR EACH ROW"
    " WHEN (OLD.contested_with <> '{}') EXECUTE FUNCTION mirror_rivals()",
}


def upgrade() -> None:
    """Apply this migration."""
    for name in _DECISION:
        op.add_column("memory", Column(name, Text))
    op.add_column(
        "memory", Column("contested_with", ARRAY(Text), nullable=False, server_default=text("'{}'"))
    )
    op.create_check_constraint("contested", "memory", f"contested_with = '{{}}' OR ({_IS_OPEN})")
    for function in (_KEEP_RIVALS, _MIRROR_RIVALS):
        op.execute(function)
    for name, definition in _TRIGGERS.items():
        op.execute(f"CREATE TRIGGER {name} {definition}")


def downgrade() -> None:
    """Revert this migration."""
    for name in _TRIGGERS:
        op.execute(f"DROP TRIGGER {name} ON memory")
    op.execute("DROP FUNCTION keep_rivals()")
    op.execute("DROP FUNCTION mirror_rivals()")
    op.drop_constraint(op.f("memory_contested_check"), "memory")
    for name in ("contested_with", *_DECISION):
        op.drop_column("memory", name)
