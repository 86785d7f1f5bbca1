// The choice of theme: light, dark, or the system's.
import { Card } from "@/components/layout";
import { chooseTheme, type Theme, useTheme } from "@/components/theme";

const THEMES: readonly { value: Theme; label: string }[] = [
  { value: "auto", label: "Same as the system" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

export function ThemeSettings() {
  const theme = useTheme();
  return (
    <Card title="Theme">
      <fieldset className="plain">
        <legend className="unseen">Theme</legend>
        {THEMES.map(({ value, label }) => (
          <label key={value} className="row">
            <input type="radio" name="theme" checked={theme === value} onChange={() => chooseTheme(value)} /> {label}
          </label>
        ))}
      </fieldset>
      <p className="muted small">Stored in this browser.</p>
    </Card>
  );
}
