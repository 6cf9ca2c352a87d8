import { init, type EChartsCoreOption } from 'echarts';
import type { FleetRun } from './fleet.js';

const width = 960;
const height = 500;
const font = 'Helvetica, Arial, sans-serif';
const ink = '#222';
const faint = '#ddd';

/** Requests a second over time, one panel for each run on the same scales, as SVG. */
export function plot(
  panels: readonly { readonly title: string; readonly colour: string; readonly run: FleetRun }[],
): string {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height });
  try {
    chart.setOption(optionsOf(panels));
    return `${chart.renderToSVGString()}\n`;
  } finally {
    chart.dispose();
  }
}

function optionsOf(panels: Parameters<typeof plot>[0]): EChartsCoreOption {
  const [first] = panels;
  const minutes = first?.run.options.watchedMinutes ?? 0;
  const outage = first?.run.options.outageMinutes ?? 0;
  const panelHeight = 175;
  const topOf = (at: number): number => 45 + at * (panelHeight + 60);
  return {
    animation: false,
    backgroundColor: '#fff',
    textStyle: { fontFamily: font, color: ink },
    title: panels.map(({ title }, at) => ({
      text: title,
      left: 75,
      top: topOf(at) - 34,
      textStyle: { fontFamily: font, fontSize: 14, fontWeight: 'normal', color: ink },
    })),
    grid: panels.map((_, at) => ({ left: 80, right: 20, top: topOf(at), height: panelHeight })),
    xAxis: panels.map((_, at) => ({
      type: 'value',
      gridIndex: at,
      min: 0,
      max: minutes,
      interval: 5,
      axisLabel: { color: ink, showMaxLabel: false },
      axisLine: { lineStyle: { color: ink } },
      splitLine: { show: false },
      ...(at === panels.length - 1
        ? { name: 'minutes after the server went away', nameLocation: 'middle', nameGap: 28 }
        : {}),
    })),
    // One request must be seen beside a thousand.
    yAxis: panels.map((_, at) => ({
      type: 'log',
      gridIndex: at,
      min: 1,
      max: 10_000,
      name: 'requests in one second',
      nameLocation: 'middle',
      nameGap: 55,
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { color: ink },
      splitLine: { lineStyle: { color: faint } },
    })),
    series: panels.map(({ colour, run }, at) => ({
      type: 'custom',
      xAxisIndex: at,
      yAxisIndex: at,
      clip: true,
      data: run.perSecond.flatMap((count, second) => (count === 0 ? [] : [[second / 60, count]])),
      renderItem: (_: unknown, api: { value(place: number): number; coord(point: readonly number[]): number[] }) => {
        const [x = 0, y = 0] = api.coord([api.value(0), api.value(1)]);
        const [, floor = 0] = api.coord([api.value(0), 1]);
        return {
          type: 'rect',
          // A second is a third of a pixel wide; a single request stands a little above the axis.
          shape: { x, y: Math.min(y, floor - 3), width: 1, height: Math.max(floor - y, 3) },
          style: { fill: colour },
        };
      },
      markArea: {
        silent: true,
        itemStyle: { color: 'rgba(0, 0, 0, 0.05)' },
        label: { position: 'insideTopRight', color: '#666', formatter: 'the server is away' },
        data: [[{ xAxis: 0 }, { xAxis: outage }]],
      },
    })),
  };
}
