// The recipe as it was written, with a button to copy it.
import { Link } from "@tanstack/react-router";

import type { Experiment } from "@/api/schema";
import { Card } from "@/components/layout";
import { showToast } from "@/components/toasts";

export function RecipeText({ experiment }: { experiment: Experiment }) {
  const text = experiment.recipe_text || JSON.stringify(experiment.recipe, null, 2);
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(() => showToast("Copied to the clipboard"));
  };
  return (
    <Card
      title="Recipe"
      actions={
        <>
          {experiment.schedule_id && (
            <Link to="/schedules/$scheduleId" params={{ scheduleId: experiment.schedule_id }}>
              of a schedule
            </Link>
          )}
          <button type="button" className="button slim" onClick={copy}>
            Copy
          </button>
        </>
      }
    >
      <pre className="code" tabIndex={0} aria-label="The recipe">
        {text}
      </pre>
    </Card>
  );
}
