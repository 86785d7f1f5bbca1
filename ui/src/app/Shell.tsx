// The frame around every page: navigation, connection status and theme.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { useState } from "react";

import { logOut } from "@/api/client";
import { aboutQuery } from "@/api/fleet";
import { useConnection } from "@/api/live";
import { requireLogin, useLoginRequired } from "@/api/token";
import { ServerLink } from "@/components/ServerLink";
import { chooseTheme, type Theme, useTheme } from "@/components/theme";
import { showToast, Toasts } from "@/components/toasts";

import { Login } from "./Login";
import { NAVIGATION } from "./navigation";
import { OutageBanner } from "./OutageBanner";

export function Shell() {
  const isRefused = useLoginRequired();
  const path = useRouterState({ select: (state) => state.location.pathname });
  // The menu of a phone is open on one page: going to another closes it.
  const [openAt, setOpenAt] = useState("");
  const open = openAt === path;
  if (isRefused) return <Login />;
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <aside className={open ? "side open" : "side"}>
        <div className="side-head">
          <Link to="/" className="brand">
            <Logo /> Prony
          </Link>
          <button
            type="button"
            className="button quiet slim menu"
            aria-expanded={open}
            onClick={() => setOpenAt(open ? "" : path)}
          >
            {open ? "Close" : "Menu"}
          </button>
        </div>
        <nav aria-label="Pages">
          {NAVIGATION.map(({ group, links }) => (
            <div key={group} className="nav-group">
              <span className="nav-title">{group}</span>
              <ul>
                {links.map(({ to, label }) => (
                  <li key={to}>
                    <Link to={to} activeOptions={ACTIVE_OPTIONS[to]} className="nav-link">
                      {label}
                    </Link>
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </nav>
        <div className="side-foot">
          <ConnectionStatus />
          <ServerLink className="button quiet slim" href="/help">
            Help
          </ServerLink>
          <ThemeButton />
          <LogOutButton />
        </div>
      </aside>
      <main id="content" tabIndex={-1}>
        <OutageBanner />
        <Outlet />
      </main>
      <Toasts />
    </div>
  );
}

// Every address begins with the overview's.
const ACTIVE_OPTIONS: Record<string, { exact: boolean }> = { "/": { exact: true } };

function Logo() {
  return (
    <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
      <circle cx="16" cy="17" r="10.5" fill="none" stroke="currentColor" strokeWidth="2.4" />
      <path d="M16 17 23 9" stroke="var(--series-5)" strokeWidth="3" strokeLinecap="round" />
      <path d="M1.5 17h3.5M27 17h3.5M16 2.500v3.500" stroke="currentColor" strokeWidth="2.4" strokeLinecap="round" />
    </svg>
  );
}

const CONNECTION_TEXTS = {
  live: ["live", "changes on the server are shown at once"],
  connecting: ["connecting", "connecting to the server's changes"],
  lost: ["not live", "the connection is lost; the page reconnects by itself and misses nothing"],
} as const;

function ConnectionStatus() {
  const state = useConnection();
  const [word, about] = CONNECTION_TEXTS[state];
  return (
    <span className={`liveness ${state}`} title={about} role="status">
      <i aria-hidden="true" /> {word}
    </span>
  );
}

function LogOutButton() {
  const client = useQueryClient();
  const about = useQuery(aboutQuery());
  if (!about.data?.asks_tokens) return null;
  const leave = async (): Promise<void> => {
    try {
      await logOut();
    } catch (error) {
      showToast(error instanceof Error ? `not logged out: ${error.message}` : "not logged out", true);
      return;
    }
    client.clear();
    requireLogin();
  };
  return (
    <button
      type="button"
      className="button quiet slim"
      title={`Logged in as ${about.data.name}`}
      onClick={() => void leave()}
    >
      Log out
    </button>
  );
}

const NEXT: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };

function ThemeButton() {
  const theme = useTheme();
  return (
    <button
      type="button"
      className="button quiet slim"
      title="Change between light, dark and the system's choice"
      onClick={() => chooseTheme(NEXT[theme])}
    >
      {{ auto: "Auto", light: "Light", dark: "Dark" }[theme]} theme
    </button>
  );
}
