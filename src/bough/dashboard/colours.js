// Colours: a mean reward is a step on a scale from pale to dark, and uncertainty fades it towards grey.

const STEPS = 7;

// The colours are variables of the style sheet, with a dark set; a probe has the browser say what they are now.
function readColour(probe, name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
}

export function readPalette() {
  const probe = document.createElement("span");
  document.body.append(probe);
  const scale = Array.from({ length: STEPS }, (_, i) => readColour(probe, `--scale-${i}`));
  const palette = {
    scale,
    uncertain: readColour(probe, "--uncertain"),
    line: toText(readColour(probe, "--line")),
    text: toText(readColour(probe, "--text")),
    soft: toText(readColour(probe, "--soft")),
    reward: toText(readColour(probe, "--reward")),
    band: toText(readColour(probe, "--band")),
    traffic: toText(readColour(probe, "--traffic")),
    mark: toText(readColour(probe, "--mark")),
  };
  probe.remove();
  return palette;
}

export function toText(rgb) {
  return `rgb(${rgb.map(Math.round).join(", ")})`;
}

function mixed(one, other, part) {
  return one.map((value, i) => value + (other[i] - value) * part);
}

// The colour of a mean between the lowest and the highest, faded by the uncertainty as a share of the prior's.
export function cellColour(palette, mean, low, high, uncertainty) {
  const part = high > low ? Math.min(Math.max((mean - low) / (high - low), 0), 1) : 0.5;
  const at = part * (STEPS - 1);
  const step = Math.min(Math.floor(at), STEPS - 2);
  const colour = mixed(palette.scale[step], palette.scale[step + 1], at - step);
  return mixed(colour, palette.uncertain, 0.85 * Math.min(Math.max(uncertainty, 0), 1) ** 2);
}

// Black or white, whichever reads better on a colour: one of them always has a contrast of 4.5.
export function textOn(rgb) {
  const [r, g, b] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}
