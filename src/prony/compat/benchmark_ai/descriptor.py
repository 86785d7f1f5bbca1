"""A Benchmark AI descriptor as a person wrote it: every key of the final form, and those of 2019 beside them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from prony.model.base import Noun

_LABEL = r"^([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$"
_WORD = "at most 63 letters, digits, '-', '_' and '.', the first and the last a letter or a digit"
LabelName = Annotated[str, Field(pattern=_LABEL, description=_WORD)]
LabelValue = Annotated[str, Field(pattern=rf"{_LABEL}|^$", description=_WORD)]
Port = Annotated[int, Field(ge=1, le=65535)]
Text = Annotated[str, Field(min_length=1)]


class Info(Noun):
    description: str | None = Field(default=None, description="what this benchmark is for")
    task_name: str | None = Field(default=None, description="name of the benchmark")
    execution_engine: Literal["default", "aws.sagemaker"] = Field(default="default", description="where it runs")
    scheduling: str = Field(default="single_run", description="single_run, or a cron expression")
    labels: dict[LabelName, LabelValue] = Field(
        default={}, max_length=10, description="labels, stored with every result"
    )


class Distributed(Noun):
    num_instances: int = Field(default=2, ge=2, description="machines of a distributed run")
    processes_per_instance: str = Field(
        default="1",
        pattern=r"^(gpus|[1-9][0-9]{0,3})$",
        description="gpus (one for each GPU), or a number in quotes",
        examples=["gpus", "4"],
    )


class Hardware(Noun):
    instance_type: Text = Field(description="a type of machine of EC2, or local", examples=["p3.8xlarge"])
    strategy: Literal["single_node", "horovod", "inference"] = Field(
        default="single_node", description="how it runs: on one node, on several, or beside a server"
    )
    aws_zone_id: str | None = None
    availability_zone: str | None = None
    distributed: Distributed | None = None


class Env(Noun):
    docker_image: Text = Field(description="the image that it runs in", examples=["python:3"])
    privileged: bool = False
    extended_shm: bool = True
    vars: dict[str, str] = Field(default={}, description="environment variables")


class Script(Noun):
    script: str | None = Field(
        default=None, pattern=r"^.*[^/]\.tar$", description="a .tar of scripts", examples=["scripts.tar"]
    )


class Ml(Noun):
    benchmark_code: str | None = Field(default=None, description="the command")
    args: str | None = Field(default=None, description="more arguments of the command")
    framework: Literal["", "tensorflow", "mxnet"] = ""
    framework_version: str | None = None
    script: Script | None = None


class Source(Noun):
    """`uri` is what 2019 called `src`."""

    src: Text | None = Field(default=None, description="URL to fetch it from", examples=["s3://bucket/key"])
    uri: Text | None = None
    path: Text = Field(description="path where the command finds it", examples=["/data/mnist"])
    md5: str | None = Field(
        default=None,
        pattern=r"^((md5:)?[a-fA-F0-9]{32}|sha256:[a-fA-F0-9]{64}|)$",
        description="the 32 hexadecimal digits that the file must have; or sha256: and 64 of them",
    )
    id: str | None = None


class Data(Noun):
    """In 2019 it could have an `id` alone."""

    id: str | None = None
    sources: tuple[Source, ...] | None = Field(default=None, description="files to fetch before it starts")


class Metric(Noun):
    name: Text = Field(description="name of the metric", examples=["accuracy"])
    units: str = Field(description="its unit", examples=["ms"])
    pattern: Text = Field(description="a regular expression for lines of the output", examples=["loss: ([0-9.]+)"])


class Output(Noun):
    """In 2019 metrics were names alone."""

    metrics: tuple[Metric | Text, ...] = Field(description="the metrics that it reports")


class Probe(Noun):
    path: str = Field(pattern="^/", description="the page to request", examples=["/ping"])
    scheme: Literal["http", "https"] = "http"
    port: Port | None = None
    initial_delay_seconds: int = Field(default=10, ge=0)
    period_seconds: int = Field(default=10, ge=1)
    timeout_seconds: int = Field(default=1, ge=1)
    success_threshold: int = Field(default=1, ge=1)
    failure_threshold: int = Field(default=3, ge=1)


class ServerEnv(Noun):
    docker_image: Text = Field(description="the image that the server runs in", examples=["python:3"])
    ports: tuple[Port, ...] = Field(min_length=1, max_length=64, description="ports where the server listens")
    start_command: str = Field(description="the server's command; may be empty", examples=["python serve.py"])
    start_command_args: str | None = None
    privileged: bool = False
    extended_shm: bool = True
    vars: dict[str, str] = Field(default={}, description="environment variables")
    readiness_probe: Probe | None = None


class ServerHardware(Noun):
    instance_type: Text = Field(description="a type of machine of EC2, or local", examples=["t3.small"])


class Server(Noun):
    hardware: ServerHardware = Field(description="the machine that the server needs")
    env: ServerEnv = Field(description="how the server is started")
    models: tuple[Source, ...] = Field(default=(), description="files to fetch before it starts")
    output: Output | None = None


class CustomParams(Noun):
    python_version: str | None = None
    sagemaker_job_name: str | None = None
    dashboard: str | None = None
    region: str | None = None
    merge: bool | None = None
    hyper_params: dict[str, str | int | float | bool] | None = None


class Descriptor(Noun):
    spec_version: Text = Field(description="0.1.0", examples=["0.1.0"])
    info: Info = Field(description="name, schedule and labels of the benchmark")
    hardware: Hardware = Field(description="the machine that it needs")
    env: Env = Field(description="image and environment variables")
    ml: Ml = Field(default=Ml(), description="the command")
    data: Data | None = None
    output: Output | None = None
    custom_params: CustomParams | None = None
    server: Server | None = None
