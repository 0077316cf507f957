import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// "npm install FOLDER" makes a link. Vite follows it, and would look for React beside the kit.
export default defineConfig({ plugins: [react()], resolve: { dedupe: ["react"] }, ssr: { noExternal: true } });
