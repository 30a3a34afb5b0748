import { mount } from "svelte";
import App from "./App.svelte";
import { language } from "./language";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/markdown.css";

document.documentElement.lang = language;
mount(App, { target: document.getElementById("app")! });
