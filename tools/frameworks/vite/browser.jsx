import { createRoot } from "react-dom/client";
import "@doorward/react/style.css";
import { Page } from "./page.jsx";

createRoot(document.getElementById("root")).render(<Page />);
