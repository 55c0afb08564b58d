"""The containers of the rendered manifests, with the values of their maps and secrets."""

from typing import Any

from tests.deploy.image.container import Specification
from tests.deploy.kustomize import Object
from tests.deploy.variants import objects

Secrets = dict[tuple[str, str], str]


class Pods:
    """The pods of the overlay `small`. `local` are the settings that differ on one machine."""

    def __init__(self, image_variables: dict[str, str], secrets: Secrets, local: dict[str, str]) -> None:
        self._rendered = objects("small")
        self._image_variables = image_variables
        self._secrets = secrets
        self._local = local

    def migration(self) -> Specification:
        """Return the container of the Job."""
        [job] = [manifest for manifest in self._rendered if manifest["kind"] == "Job"]
        [container] = job["spec"]["template"]["spec"]["containers"]
        return self._specification("loci-check-migrate", job, container)

    def processes(self) -> dict[str, list[Specification]]:
        """Return for each Deployment its init containers and then its container."""
        return {
            component: [
                self._specification(f"loci-check-{component}-{number}", manifest, container)
                for number, container in enumerate([*spec.get("initContainers", []), *spec["containers"]])
            ]
            for manifest in self._rendered
            if manifest["kind"] == "Deployment"
            for component in [manifest["metadata"]["labels"]["app.kubernetes.io/component"]]
            for spec in [manifest["spec"]["template"]["spec"]]
        }

    def _specification(self, name: str, manifest: Object, container: Object) -> Specification:
        security = manifest["spec"]["template"]["spec"]["securityContext"]
        return Specification(
            name=name,
            command=tuple(container["command"]),
            variables=self._image_variables | self._variables(container) | self._local,
            user=security["runAsUser"],
            group=security["runAsGroup"],
            read_only=container["securityContext"]["readOnlyRootFilesystem"],
            memory_bytes=int(container["resources"]["limits"]["memory"].removesuffix("Mi")) * 2**20,
        )

    def _variables(self, container: Object) -> dict[str, str]:
        """Return the variables in Kubernetes's order: maps first, then the container's own."""
        variables: dict[str, str] = {}
        for source in container.get("envFrom", []):
            variables |= self._map(source["configMapRef"]["name"])
        for pair in container.get("env", []):
            value = pair.get("value") if "value" in pair else self._secret(pair["valueFrom"]["secretKeyRef"])
            if value is not None:
                variables[pair["name"]] = value
        return variables

    def _map(self, name: str) -> dict[str, str]:
        [data] = [
            m["data"] for m in self._rendered if m["kind"] == "ConfigMap" and m["metadata"]["name"] == name
        ]
        return dict(data)

    def _secret(self, reference: dict[str, Any]) -> str | None:
        key = (reference["name"], reference["key"])
        return self._secrets.get(key) if reference.get("optional") else self._secrets[key]
