// Uses the installed packages, from a folder that has nothing else:
//
//	node fresh.mjs ADDRESS PASSWORD

import assert from "node:assert/strict";
import { Client, Unauthenticated } from "@doorward/client";
import { Verifier } from "@doorward/client/assertion";
import { check } from "@doorward/client/check";
import { protect as express } from "@doorward/client/express";
import { protect as fastify } from "@doorward/client/fastify";
import { startDoorward } from "@doorward/client/test";
import { receive } from "@doorward/client/webhook";
import { createStore, DoorwardProvider } from "@doorward/react";

const [, , baseUrl, password] = process.argv;
const doorward = new Client({ baseUrl });
await assert.rejects(doorward.login({ email: "owner@acme.example", password: "wrong" }), Unauthenticated);
const { token } = await doorward.login({ email: "owner@acme.example", password });
const people = [];
for await (const person of doorward.as(token).list("/api/v2/users", { query: { limit: 2 } })) people.push(person.email);
assert.ok(people.length >= 4, people.join(" "));
assert.deepEqual([Verifier, check, express, fastify, startDoorward, receive, createStore, DoorwardProvider].map((exported) => typeof exported), Array(8).fill("function"));
