// Draws the plots in the colours of the page, and again when its theme changes.
const theme = matchMedia("(prefers-color-scheme: dark)");
function draw() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const config = {
    background: "transparent",
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: {
      labelColor: colour("--faint"), labelFontSize: 12, domainColor: colour("--line"),
      tickColor: colour("--line"), gridColor: colour("--line"),
    },
  };
  plots.forEach((plot, number) =>
    vegaEmbed(`#plot${number}`, plot, { actions: false, config, renderer: "svg" }));
}
draw();
theme.addEventListener("change", draw);
