import { pick } from "../language";

/** What the header and the messages need of the texts about Slack before the rest is loaded. */
export const slackMenu = pick({
  en: { attach: "Attach to Slack…", panel: "Slack", attached: "Attached to Slack" },
  de: { attach: "Mit Slack verbinden …", panel: "Slack", attached: "Mit Slack verbunden" },
});
