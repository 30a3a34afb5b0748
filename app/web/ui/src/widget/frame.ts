import { mount } from "svelte";
import { language } from "../language";
import "../styles/tokens.css";
import "../styles/base.css";
import "../styles/markdown.css";
import Widget from "./Widget.svelte";

document.documentElement.lang = language;
mount(Widget, { target: document.getElementById("app")! });
