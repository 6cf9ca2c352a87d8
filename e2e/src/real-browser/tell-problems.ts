/** In a page: whatever nobody has caught is told, in one line. */
export function tellProblems(tell: (problem: string) => void): void {
  for (const event of ['error', 'unhandledrejection'] as const) {
    addEventListener(event, (problem) => {
      const cause: unknown = 'reason' in problem ? problem.reason : (problem as ErrorEvent).error;
      tell(cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause));
    });
  }
}
