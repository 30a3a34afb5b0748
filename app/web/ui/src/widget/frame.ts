import { mount } from "svelte";
import { language } from "../language";
import "../styles/tokens.css";
import "../styles/base.css";
import "../styles/markdown.css";
import { host } from "./host.svelte";
import Widget from "./Widget.svelte";

document.documentElement.lang = language;
const show = () => mount(Widget, { target: document.getElementById("app")! });
if (host.present) host.onstart = show;
else show();
