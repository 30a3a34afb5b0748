// The icons, by what they mean here: those of Lucide (ISC), of which the build takes these alone.
import {
  Activity, Archive, ArrowDown, ArrowUp, Braces, Check, ChevronDown, ChevronLeft, ChevronRight, CircleQuestionMark, Clock, Copy,
  Download, Ellipsis, ExternalLink, Eye, File, GitFork, Globe, Hash, Info, KeyRound, Layers, Lightbulb, Link, Menu, PanelRight, Paperclip,
  Pencil, Pin, Plus, RotateCw, Search, Settings2, Spool, Square, Sun, Terminal, Trash, TriangleAlert, Undo2, User, WifiOff,
  Wrench, X,
} from "lucide";

export const icons = {
  menu: Menu, plus: Plus, search: Search, up: ArrowUp, down: ArrowDown, stop: Square, clip: Paperclip, spool: Spool,
  check: Check, x: X, chev: ChevronRight, chevl: ChevronLeft, chevd: ChevronDown, copy: Copy, edit: Pencil,
  redo: RotateCw, undo: Undo2, pin: Pin, fork: GitFork, dots: Ellipsis, panel: PanelRight, clock: Clock, tool: Wrench,
  think: Lightbulb, hash: Hash, globe: Globe, api: Braces, sun: Sun, off: WifiOff, key: KeyRound, alert: TriangleAlert,
  info: Info, dl: Download, archive: Archive, eye: Eye, term: Terminal, file: File, user: User, layers: Layers,
  help: CircleQuestionMark, cog: Settings2, pulse: Activity, trash: Trash, link: Link, ext: ExternalLink,
};

export type IconName = keyof typeof icons;
