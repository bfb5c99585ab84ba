"""Functions in the cloud."""


class Lambda:
    """Deploy and call functions of one region."""

    def __init__(self, region: str = "eu-west-1", api_key: str = "") -> None:
        self._region = region
        self._deployed: dict[str, int] = {}

    def lambda_list(self) -> list[str]:
        """List the functions that are deployed."""
        return sorted(self._deployed)

    def lambda_deploy(self, name: str, memory: int = 128) -> dict[str, str | int]:
        """Deploy a new version of a function.

        :param name: The function.
        :param memory: Megabytes that it may use.
        """
        self._deployed[name] = self._deployed.get(name, 0) + 1
        return {"name": name, "region": self._region, "version": self._deployed[name], "memory": memory}

    async def lambda_invoke(self, name: str, payload: dict[str, str] | None = None) -> str:
        """Call a function."""
        if name not in self._deployed:
            raise LookupError(f"'{name}' is not deployed in {self._region}")
        return f"{name} answered {payload or {}}"
