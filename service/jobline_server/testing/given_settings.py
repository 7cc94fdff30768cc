"""Settings of servers in tests: those that are given, and nothing of the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_settings import PydanticBaseSettingsSource

from jobline_server.config import ConfigurationError, Settings
from jobline_server.wrong_settings import explain


class _Given(Settings):
    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[Any],  # noqa: ARG003  # pydantic's signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # as above
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # as above
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


def given_settings(given: Mapping[str, Any]) -> Settings:
    """Returns these settings, and the defaults of all others. Ignores those that are None. The
    variables of a shell are for its own server: a test is the same wherever it runs. Raises
    `ConfigurationError`.
    """
    values = {name: value for name, value in given.items() if value is not None}
    try:
        return _Given(**values)
    except ValidationError as error:

        def origin(name: str, value: object) -> str:
            return f"{name}={values.get(name, value)}"

        raise ConfigurationError(explain(error, Settings.model_fields, origin)) from None
