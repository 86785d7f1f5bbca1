// The settings page: tokens, audit trail, the check of the store, theme and information about the server.
import { useNavigate, useSearch } from "@tanstack/react-router";

import { Page } from "@/components/layout";
import { Tabs } from "@/components/Tabs";

import { About } from "./About";
import { StoreCheckCard } from "./StoreCheckCard";
import { ThemeSettings } from "./ThemeSettings";
import type { Part } from "./search";
import { Tokens } from "./Tokens";
import { AuditTrail } from "./AuditTrail";

const TABS = [
  { key: "tokens", label: "Tokens" },
  { key: "trail", label: "Audit trail" },
  { key: "store", label: "Storage" },
  { key: "look", label: "Theme" },
  { key: "about", label: "About" },
] as const;
const SHOWN: Record<Part, () => React.ReactNode> = {
  tokens: Tokens,
  trail: AuditTrail,
  store: StoreCheckCard,
  look: ThemeSettings,
  about: About,
};

export function Settings() {
  const { part = "tokens" } = useSearch({ from: "/settings" });
  const navigate = useNavigate({ from: "/settings" });
  const Chosen = SHOWN[part];
  return (
    <Page title="Settings">
      <Tabs
        tabs={TABS}
        chosen={part}
        label="Parts of the settings"
        onChoose={(key) => void navigate({ search: { part: key }, replace: true })}
      >
        <Chosen />
      </Tabs>
    </Page>
  );
}
