// The import page: results that were measured elsewhere are sent to the server, which checks them.
import "./import.css";

import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ChangeEvent, type ReactNode, useId, useState } from "react";

import { api, readBody } from "@/api/client";
import type { ExperimentView } from "@/api/schema";
import { StateBadge } from "@/components/Badge";
import { Card, Page } from "@/components/layout";
import { Failure, Loading } from "@/components/states";

import { digestBlob, packTar } from "./tar";

type Outcome = { state: "idle" } | { state: "sending" } | { state: "failed"; error: unknown } | Kept;
interface Kept {
  state: "kept";
  view: ExperimentView;
}

export function Import() {
  const [outcome, setOutcome] = useState<Outcome>({ state: "idle" });
  const client = useQueryClient();
  const bring = async (pack: () => Blob): Promise<void> => {
    setOutcome({ state: "sending" });
    try {
      setOutcome({ state: "kept", view: await sendTar(pack()) });
      await client.invalidateQueries({ queryKey: ["listing"] });
    } catch (error) {
      setOutcome({ state: "failed", error });
    }
  };
  const isSending = outcome.state === "sending";
  return (
    <Page
      title="Import"
      about="Bring results that were measured elsewhere. The upload starts when you choose. The server verifies every checksum and computes all numbers again."
      actions={
        <Link to="/experiments" className="button">
          All experiments
        </Link>
      }
    >
      {!("subtle" in crypto) && (
        <p className="warning">
          This page needs HTTPS, or a server on this machine. From a terminal:{" "}
          <code>prony import FOLDER --server {location.origin}</code>
        </p>
      )}
      <Card title="A folder">
        <FilePicker
          label="Result folder or exported folder"
          help="A folder with experiment.json, or one of its jobs with result.json, such as prony export writes."
          isDisabled={isSending}
          isFolder
          onPick={(files) => void bring(() => packFolder(files))}
        />
      </Card>
      <Card title="A tar">
        <FilePicker
          label="Exported tar"
          help="The .tar that Export on an experiment's page gives, here or on another server."
          isDisabled={isSending}
          onPick={([tar]) => tar && void bring(() => tar)}
        />
      </Card>
      <OutcomeCard of={outcome} />
      <Card title="Results of other programs">
        <p>
          On the machine that has them, in a terminal: <code>prony import FOLDER --server {location.origin}</code>
        </p>
      </Card>
    </Page>
  );
}

interface PickerProps {
  label: string;
  help: string;
  isDisabled: boolean;
  isFolder?: boolean;
  onPick: (files: readonly File[]) => void;
}

function FilePicker({ label, help, isDisabled, isFolder = false, onPick }: PickerProps) {
  const id = useId();
  const pick = (event: ChangeEvent<HTMLInputElement>): void => {
    const files = [...(event.target.files ?? [])];
    event.target.value = ""; // the same may be chosen again
    if (files.length > 0) onPick(files);
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="file"
        aria-describedby={`${id}-help`}
        disabled={isDisabled}
        onChange={pick}
        // React passes it on; its types do not know it.
        {...(isFolder ? { webkitdirectory: "" } : { accept: ".tar,application/x-tar" })}
      />
      <span className="help" id={`${id}-help`}>
        {help}
      </span>
    </div>
  );
}

function OutcomeCard({ of: outcome }: { of: Outcome }): ReactNode {
  if (outcome.state === "idle") return null;
  if (outcome.state === "sending") return <Loading what="Sending, checking and computing" />;
  if (outcome.state === "failed") return <Failure error={outcome.error} />;
  const { experiment } = outcome.view;
  return (
    <Card title="Imported" label="Imported">
      <div className="row">
        <Link to="/experiments/$experimentId" params={{ experimentId: experiment.id }}>
          {experiment.name}
        </Link>
        <StateBadge of={experiment.state} />
        <span className="muted">
          {experiment.job_count} job{experiment.job_count === 1 ? "" : "s"}
        </span>
      </div>
    </Card>
  );
}

/** The browser names each file with the folder that was chosen before it. */
function packFolder(files: readonly File[]): Blob {
  return packTar(
    files.map((file) => ({ name: file.webkitRelativePath.split("/").slice(1).join("/") || file.name, content: file })),
  );
}

async function sendTar(tar: Blob): Promise<ExperimentView> {
  const sha256 = await digestBlob(tar);
  return readBody(
    api.PUT("/api/v1/imports/{sha256}", {
      params: { path: { sha256 } },
      headers: { "Content-Type": "application/x-tar" },
      body: tar as unknown as string,
      bodySerializer: (body: unknown) => body as BodyInit,
    }),
  );
}
