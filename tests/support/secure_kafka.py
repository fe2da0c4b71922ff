"""A broker that also listens with TLS and passwords, and the configuration of its clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from connector.config.kafka import Kafka
from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.ports import free_port
from connector.sandbox.settings import HOST
from tests.support.certificates import Certificates, write_certificates

USER, PASSWORD = "thl", "a secret with a blank"
MECHANISM = "SCRAM-SHA-512"
_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@dataclass(frozen=True)
class SecureBroker:
    """A running broker.

    Args:
        bootstrap: address of the listener with TLS and password.
        authority: the file with which its certificate is verified.
        plain: the listener without either, on which everybody may do everything.
    """

    bootstrap: str
    authority: Path
    plain: str

    def kafka(self, *, user: str = USER, password: str = PASSWORD, authority: Path | None = None) -> Kafka:
        """The `kafka` section of a client's configuration."""
        trusted = str(authority or self.authority)
        return Kafka(
            bootstrap=self.bootstrap,
            partitions=2,
            replication=1,
            min_isr=1,
            allow_unsafe=True,
            properties={
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": trusted,
                "sasl.mechanism": MECHANISM,
                "sasl.username": user,
                "sasl.password": password,
            },
            spark_properties={
                "security.protocol": "SASL_SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": trusted,
                "sasl.mechanism": MECHANISM,
                "sasl.jaas.config": f'{_LOGIN} username="{user}" password="{password}";',
            },
        )


@contextmanager
def secure_broker(folder: Path, others: Sequence[str] = ()) -> Iterator[SecureBroker]:
    """Start a broker that is ended with the block.

    Args:
        folder: for its files.
        others: users beside USER, with the same password; he may do everything, they what rules allow.
    """
    plain, secure, controller = free_port(), free_port(), free_port()
    listeners = f"PLAINTEXT://{HOST}:{plain},SASL_SSL://{HOST}:{secure}"
    with write_certificates() as certificates:
        settings = {
            "listeners": f"{listeners},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": listeners,
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(_chained(certificates, folder)),
            "sasl.enabled.mechanisms": MECHANISM,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{USER}",
            f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": f"{_LOGIN};",
        }
        with KafkaBroker(folder / "kafka", plain, settings, die_with_parent=True) as broker:
            for user in (USER, *others):
                _add_user(broker.bootstrap, user)
            yield SecureBroker(f"{HOST}:{secure}", certificates.authority, broker.bootstrap)


def _chained(certificates: Certificates, folder: Path) -> Path:
    """Key and certificate in one file, the format that Kafka reads."""
    folder.mkdir(parents=True, exist_ok=True)
    both = folder / "keystore.pem"
    both.write_bytes(certificates.key.read_bytes() + certificates.certificate.read_bytes())
    return both


def _add_user(bootstrap: str, user: str) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    added = UserScramCredentialUpsertion(user, info, PASSWORD.encode())
    admin = AdminClient({"bootstrap.servers": bootstrap})  # alive until it has answered
    admin.alter_user_scram_credentials([added])[user].result(30)
