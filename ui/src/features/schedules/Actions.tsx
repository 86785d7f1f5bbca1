// The actions on a schedule: pause, resume, run now, remove.
import { useQueryClient } from "@tanstack/react-query";

import type { Schedule } from "@/api/schema";
import { ConfirmButton } from "@/components/Dialog";
import { useAction } from "@/components/toasts";

import { pauseSchedule, removeSchedule, resumeSchedule, runSchedule } from "./queries";

export function Actions({ of: schedule, onRemoved }: { of: Schedule; onRemoved?: () => void }) {
  const client = useQueryClient();
  const act = useAction();
  const refresh = async (): Promise<void> => {
    await Promise.all(["schedules", "schedule", "fires"].map((key) => client.invalidateQueries({ queryKey: [key] })));
  };
  const run = (work: () => Promise<unknown>, done: string): void => {
    void act(async () => {
      await work();
      await refresh();
    }, done);
  };
  const isPaused = schedule.state === "paused";
  return (
    <span className="row">
      <button
        type="button"
        className="button slim"
        onClick={() => run(() => runSchedule(schedule.id), `${schedule.name} runs now`)}
      >
        Run now
      </button>
      <button
        type="button"
        className="button slim"
        onClick={() =>
          run(
            () => (isPaused ? resumeSchedule(schedule.id) : pauseSchedule(schedule.id)),
            `${schedule.name} is ${isPaused ? "active" : "paused"}`,
          )
        }
      >
        {isPaused ? "Resume" : "Pause"}
      </button>
      <ConfirmButton
        label="Remove"
        className="button slim danger"
        title={`Remove the schedule ${schedule.name}?`}
        question="It submits nothing more. Its experiments are kept."
        yes="Remove it"
        act={async () => {
          await removeSchedule(schedule.id);
          onRemoved?.();
          await refresh();
        }}
      />
    </span>
  );
}
