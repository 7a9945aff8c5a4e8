// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The colours are those that colour-blind people tell apart [Okabe, Ito]; each state has dashes or
// a mark of its own as well.
#include "fabric/picture/svg.h"

namespace ib::fabric {

const char* const kSvgStyle = R"(
.paper { fill: #ffffff; }
.picture text { font: 11px "DejaVu Sans", Verdana, Arial, sans-serif; fill: #1b1f24; }
.picture .heading { font-size: 14px; font-weight: bold; }
.picture .name { font-weight: bold; }
.picture .port { font-size: 8.5px; fill: #57606a; text-anchor: middle; }
.picture .note { font-size: 10px; paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }
.picture .programs { font-style: italic; }
.box text { text-anchor: middle; }
.box rect { fill: #ffffff; stroke: #57606a; stroke-width: 1.2; }
.box.switch rect { fill: #dce9f5; }
.box.ideal rect { fill: #f1f1f1; stroke-dasharray: 1 3; }
.box.armed rect { stroke: #0072b2; stroke-width: 2; stroke-dasharray: 9 4; }
.box.init rect { stroke: #b36b00; stroke-width: 2; stroke-dasharray: 2 4; }
.box.down rect { stroke: #d55e00; stroke-width: 2; stroke-dasharray: 7 5; }
.box.gone rect { fill: #e4e4e4; stroke: #808080; stroke-width: 2; stroke-dasharray: 2 3; }
.box.route rect { stroke: #a67c00; stroke-width: 3.5; }
.wire { fill: none; stroke: #009e73; }
.line.armed .wire { stroke: #0072b2; stroke-dasharray: 9 4; }
.line.init .wire { stroke: #b36b00; stroke-dasharray: 2 4; }
.line.down .wire { stroke: #d55e00; stroke-dasharray: 7 5; }
.many .line.active .wire { stroke-opacity: 0.4; }
.halo { fill: none; stroke: #f2c200; stroke-width: 11; stroke-opacity: 0.75; }
.step circle, .step path { fill: #a67c00; }
.picture .step text { fill: #ffffff; font-size: 9.5px; font-weight: bold; text-anchor: middle; }
.hit { fill: none; stroke: transparent; stroke-width: 10; pointer-events: stroke; }
.cross { display: none; fill: none; stroke: #d55e00; stroke-width: 2.4; }
.bang { display: none; fill: #aa3377; }
.down > .cross, .errors > .bang { display: inline; }
.line > .note, .line > .cross, .line > .bang, .step { pointer-events: none; }
@media (prefers-color-scheme: dark) {
  .paper { fill: #14171b; }
  .picture text { fill: #e6e9ed; }
  .picture .port { fill: #a4adb8; }
  .picture .note { stroke: #14171b; }
  .box rect { fill: #20252b; stroke: #8b949e; }
  .box.switch rect { fill: #1d3348; }
  .box.ideal rect { fill: #262626; }
  .box.gone rect { fill: #333333; }
  .box.armed rect, .line.armed .wire { stroke: #56b4e9; }
  .box.init rect, .line.init .wire { stroke: #e69f00; }
  .box.down rect, .line.down .wire, .cross { stroke: #ff7f2a; }
  .wire { stroke: #12c493; }
  .bang { fill: #e58fc1; }
}
)";

}  // namespace ib::fabric
