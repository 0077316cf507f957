import { Client } from "@doorward/client";

export const doorward = new Client({ baseUrl: process.env.DOORWARD });
