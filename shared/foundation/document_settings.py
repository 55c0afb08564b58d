"""The settings of documents: how files are read and cut, where they lie, and how what is found is ranked."""

from typing import ClassVar

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from shared.foundation import setting_rules


class DocumentSettings(BaseSettings):
    """The part of the settings that is about documents."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(use_attribute_docstrings=True)

    document_parse_seconds: float = Field(60, gt=0)
    """The longest time that a file may be read, at most 0.8 of `LOCI_JOB_LEASE`. A file that takes longer is
    refused as unreadable."""
    document_parse_memory_mb: int = Field(1024, ge=256)
    """The memory in MiB of the process that reads a file. A worker starts one for each file that it reads, so
    its own limit has to be that for each of its tasks, and 640 MiB."""
    document_chunk_chars: int = Field(1000, ge=100, le=8000)
    """The most characters of a chunk of a document. A document is cut anew when its file is sent again."""
    document_chunk_overlap: int = Field(150, ge=0, validate_default=True)
    """Characters that a chunk repeats of the one before it."""
    document_postgres_bytes: int = Field(1_048_576, ge=0)
    """Files of at most so many bytes lie in Postgres, larger ones in the S3-compatible storage. If there is
    none, all lie in Postgres."""
    s3_bucket: str | None = None
    """The bucket of an S3-compatible storage for files. Without it all files lie in Postgres."""
    s3_endpoint: str | None = None
    """The address of the S3-compatible storage. Unset means that of AWS in `LOCI_S3_REGION`."""
    s3_region: str = "us-east-1"
    """The region of the bucket."""
    s3_access_key_id: SecretStr | None = None
    """The id of the access key. Unset means that the machine's own role is used."""
    s3_secret_access_key: SecretStr | None = None
    """The secret of the access key."""
    s3_timeout: float = Field(30, gt=0)
    """The time limit of a request to the S3-compatible storage."""
    rerank_base_url: str | None = None
    """An endpoint with a cross-encoder that ranks what a search in documents finds. It answers `POST /rerank`
    as those of Cohere, Jina, vLLM and llama.cpp do. Without it scores and diversity decide."""
    rerank_model: str | None = None
    """The name of the cross-encoder."""
    rerank_api_key: SecretStr | None = None
    """The API key of the cross-encoder's endpoint."""
    rerank_timeout: float = Field(2, gt=0)
    """The longest time that a search waits for the cross-encoder before it does without."""

    @field_validator("document_chunk_overlap")
    @classmethod
    def _require_smaller_overlap(cls, overlap: int, info: ValidationInfo) -> int:
        return setting_rules.require_smaller_overlap(overlap, info.data)
