// Vercel AI SDK behind Pegboard's gateway: node vercel.mjs "How much is 6 times 7?"
// It needs npm install ai@6 @ai-sdk/mcp @ai-sdk/openai-compatible, a model's key, and pegboard serve in another terminal.
import { createMCPClient } from "@ai-sdk/mcp";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs } from "ai";

const env = process.env;
const url = env.PEGBOARD_URL ?? "http://127.0.0.1:8321/mcp";
const client = await createMCPClient({ transport: { type: "http", url } });
const provider = createOpenAICompatible({
  name: "models",
  baseURL: env.OPENAI_BASE_URL ?? "https://api.openai.com/v1",
  apiKey: env.OPENAI_API_KEY,
});
const tools = await client.tools();

const { text } = await generateText({
  model: provider(env.MODEL ?? "gpt-5.4"),
  tools,
  prompt: process.argv.slice(2).join(" "),
  stopWhen: stepCountIs(20),
  prepareStep: async () => {
    Object.assign(tools, await client.tools()); // what was loaded is there at the next step
    return { activeTools: Object.keys(tools) };
  },
});
console.log(text);
await client.close();
