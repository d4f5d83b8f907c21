// The types of what our modules use of vendor/preact.js. The packages in it have types of their own, which need their folders.

/** What a component gives: something to be drawn. */
export interface VNode {
  readonly type: unknown;
}

/** A value that is drawn again when it changes. */
export interface Signal<T> {
  value: T;
  /** The value, without being told when it changes. */
  peek(): T;
}

export interface Ref<T> {
  current: T;
}

type Leave = () => void;
type Effect = () => void | Leave;

export function html(strings: TemplateStringsArray, ...values: unknown[]): VNode;
export function render(node: VNode, parent: Element): void;
export function batch<T>(act: () => T): T;
// What begins with nothing holds anything later, unless a comment beside it says what.
export function signal(value: null | undefined): Signal<any>;
export function signal(value: never[]): Signal<any[]>;
export function signal<T>(value: T): Signal<T>;
export function useSignal(value: null | undefined): Signal<any>;
export function useSignal(value: never[]): Signal<any[]>;
export function useSignal(value: Record<string, never>): Signal<any>;
export function useSignal<T>(value: T): Signal<T>;
export function useRef(value: null): Ref<any>;
export function useRef(value: Record<string, never>): Ref<any>;
export function useRef<T>(value: T): Ref<T>;
export function useMemo<T>(make: () => T, changes: readonly unknown[]): T;
export function useId(): string;
export function useEffect(effect: Effect, changes?: readonly unknown[]): void;
export function useLayoutEffect(effect: Effect, changes?: readonly unknown[]): void;
export function useErrorBoundary(tell?: (error: any) => void): [any, () => void];
