// Form fields with a label, a control and help text.
import "./forms.css";

import { type ReactNode, useId } from "react";

interface ControlProps {
  id: string;
  "aria-describedby"?: string;
}

/** `children` makes the control and gives it what ties it to its name and help. */
export function Field(props: { label: string; help?: ReactNode; children: (control: ControlProps) => ReactNode }) {
  const { label, help, children } = props;
  const id = useId();
  const helpId = `${id}-help`;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(help === undefined ? { id } : { id, "aria-describedby": helpId })}
      {help !== undefined && (
        <span className="help" id={helpId}>
          {help}
        </span>
      )}
    </div>
  );
}

interface Option {
  value: string;
  label: string;
  /** Told on hover. */
  title?: string;
}

export function SelectField(props: {
  label: string;
  value: string;
  options: readonly Option[];
  onChange: (value: string) => void;
  help?: ReactNode;
}) {
  const { label, value, options, onChange, help } = props;
  return (
    <Field label={label} {...(help === undefined ? {} : { help })}>
      {(control) => (
        <select {...control} value={value} onChange={(event) => onChange(event.target.value)}>
          {options.map((option) => (
            <option key={option.value} value={option.value} title={option.title}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface TextFieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  help?: ReactNode;
  placeholder?: string;
  required?: boolean;
  suggestions?: readonly string[];
}

/** One line that is kept while it is typed. */
export function TextField({ label, value, onChange, help, placeholder, required }: TextFieldProps) {
  return (
    <Field label={label} {...(help === undefined ? {} : { help })}>
      {(control) => (
        <input
          {...control}
          value={value}
          placeholder={placeholder}
          required={required}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

/** A few lines, each of them an answer. */
export function LinesField({ label, value, onChange, help, placeholder, required }: TextFieldProps) {
  return (
    <Field label={label} {...(help === undefined ? {} : { help })}>
      {(control) => (
        <textarea
          {...control}
          className="few"
          spellCheck={false}
          value={value}
          placeholder={placeholder}
          required={required}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

/** One line that counts when it is done: by Enter, or by leaving it. For what goes into the address. */
export function DeferredTextField({ value, onChange, suggestions = [], ...rest }: TextFieldProps) {
  const listId = useId();
  return (
    <Field label={rest.label} {...(rest.help === undefined ? {} : { help: rest.help })}>
      {(control) => (
        <>
          <input
            {...control}
            // A new value from outside is a new input: what was half typed is gone with the view that it belonged to.
            key={value}
            defaultValue={value}
            list={listId}
            placeholder={rest.placeholder}
            onBlur={(event) => event.target.value !== value && onChange(event.target.value.trim())}
            onKeyDown={(event) => {
              if (event.key === "Enter") event.currentTarget.blur();
            }}
          />
          <datalist id={listId}>
            {suggestions.map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}
