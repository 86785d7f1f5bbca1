import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { fakeView } from "../../../tests/fakes/resources";
import { fakeServer } from "../../../tests/server";
import { visit } from "../../../tests/visit";

const server = fakeServer();

/** A file as a browser gives it out of a folder that was chosen. */
function fakeFile(): File {
  return Object.defineProperty(new File(["abc"], "job.json"), "webkitRelativePath", { value: "export/job.json" });
}

describe("the import page", () => {
  it("sends a folder as a tar under its checksum and leads to the experiment that came of it", async () => {
    server.current.answer("PUT", "/api/v1/imports/{sha256}", fakeView());
    const { user } = await visit("/import");
    await user.upload(await screen.findByLabelText("Result folder or exported folder"), fakeFile());
    const kept = within(await screen.findByRole("region", { name: "Imported" }));
    expect(kept.getByRole("link").getAttribute("href")).toBe("/experiments/x1");
    const [sent] = server.current.requestsTo("PUT", "/api/v1/imports/{sha256}");
    expect(sent?.path).toMatch(/imports\/[0-9a-f]{64}$/);
    expect(sent?.headers.get("Content-Type")).toBe("application/x-tar");
  });

  it("shows why the server refused, and what to do", async () => {
    server.current.refuse("PUT", "/api/v1/imports/{sha256}", {
      status: 422,
      detail: "this is no experiment",
      hint: "send an export",
    });
    const { user } = await visit("/import");
    await user.upload(await screen.findByLabelText("Result folder or exported folder"), fakeFile());
    expect((await screen.findByRole("alert")).textContent).toBe("this is no experimentsend an export");
  });
});
