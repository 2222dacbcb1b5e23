// Beadmill's leash for OpenCode's tools: every command carries the mark of the session that its conversation belongs
// to, by which it is found and ended, and no tool runs for a conversation that has none (any more).
import { readFileSync } from "node:fs"

const marks = process.env.BEADMILL_MARKS
const hidden = (process.env.BEADMILL_HIDDEN ?? "").split(",").filter(Boolean)
const owner = (conversation) => JSON.parse(readFileSync(`${marks}/${conversation}.json`, "utf8"))

export const Leash = async () => ({
  "tool.execute.before": async ({ sessionID }) => {
    owner(sessionID)
  },
  "shell.env": async ({ sessionID }, { env }) => {
    for (const name of hidden) env[name] = ""
    Object.assign(env, owner(sessionID))
  },
})
