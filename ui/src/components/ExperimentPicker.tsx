// A field to choose experiments or jobs by id, in order, with recent experiments as suggestions.
import "./forms.css";

import { useQuery } from "@tanstack/react-query";
import { type SyntheticEvent, useId, useState } from "react";

import { recentQuery } from "@/api/queries";

import { formatAgo, useNow } from "./time";

interface Props {
  chosen: readonly string[];
  onChange: (ids: string[]) => void;
  label: string;
  /** Said of the first one, where the order matters. */
  first?: string;
  most?: number;
}

export function ExperimentPicker({ chosen, onChange, label, first, most = 20 }: Props) {
  const [typed, setTyped] = useState("");
  const recent = useQuery(recentQuery());
  const at = useNow();
  const listId = useId();
  const inputId = useId();
  const known = new Map((recent.data?.items ?? []).map(({ experiment }) => [experiment.id, experiment]));
  const add = (id: string): void => {
    setTyped("");
    if (id && !chosen.includes(id)) onChange(most === 1 ? [id] : [...chosen, id]);
  };
  const typeText = (text: string): void => {
    // A suggestion that was picked comes whole, and is not typed any further.
    if (known.has(text)) add(text);
    else setTyped(text);
  };
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    add(typed.trim());
  };
  return (
    <form className="picker" onSubmit={submit}>
      <label htmlFor={inputId}>{label}</label>
      <div className="row">
        {chosen.map((id, index) => (
          <span key={id} className="chosen">
            {index === 0 && first !== undefined && chosen.length > 1 && <em className="muted">{first}</em>}
            <b>{known.get(id)?.name ?? ""}</b> <span className="mono">{id}</span>
            <button
              type="button"
              className="button quiet slim"
              aria-label={`Remove ${id}`}
              onClick={() => onChange(chosen.filter((one) => one !== id))}
            >
              ✕
            </button>
          </span>
        ))}
        {chosen.length < most && (
          <input
            id={inputId}
            list={listId}
            value={typed}
            placeholder="name or id of an experiment"
            autoComplete="off"
            onChange={(event) => typeText(event.target.value)}
          />
        )}
        <datalist id={listId}>
          {[...known.values()]
            .filter((experiment) => !chosen.includes(experiment.id))
            .map((experiment) => (
              <option key={experiment.id} value={experiment.id}>
                {`${experiment.name}, ${experiment.state}, ${formatAgo(experiment.created_at, at)}`}
              </option>
            ))}
        </datalist>
        {typed !== "" && (
          <button type="submit" className="button">
            Add
          </button>
        )}
      </div>
    </form>
  );
}
