// The recipe as it was written, with a button to copy it.
import { Link } from "@tanstack/react-router";

import type { Experiment } from "@/api/schema";
import { CopyButton } from "@/components/CopyButton";
import { Card } from "@/components/layout";

export function RecipeText({ experiment }: { experiment: Experiment }) {
  const text = experiment.recipe_text || JSON.stringify(experiment.recipe, null, 2);
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
          <CopyButton text={text} className="button slim" />
        </>
      }
    >
      <pre className="code" tabIndex={0} aria-label="The recipe">
        {text}
      </pre>
    </Card>
  );
}
