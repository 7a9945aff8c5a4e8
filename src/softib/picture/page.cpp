// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/picture/page.h"

#include "fabric/picture/escape.h"
#include "fabric/picture/looks_internal.h"
#include "fabric/picture/svg.h"

#include <fmt/format.h>

#include <cmath>

namespace ib::softib {
namespace {

using fabric::clean_text;
using fabric::kNoIndex;

constexpr std::size_t kTroublesShown = 400;  // characters; there are a dozen kinds

Json port_json(const fabric::ShownPort& port) {
  return Json::array({port.number, link_state_name(port.state), port.lid, clean_text(port.rate, 12),
                      port.peer == kNoIndex ? -1 : static_cast<std::int64_t>(port.peer),
                      port.peer_port, port.data() * 4, port.packets(),
                      clean_text(troubles_text(port), kTroublesShown)});
}

template <class List, class ToJson>
Json all_of(const List& list, ToJson&& to_json) {
  Json all = Json::array();
  for (const auto& one : list) all.push_back(to_json(one));
  return all;
}

// Which elements are in a box, which cables in a line: stays while the layout does.
Json structure_json(const fabric::Picture& picture) {
  return {
      {"boxes", all_of(picture.boxes, [](const fabric::Box& box) { return Json(box.members); })},
      {"lines", all_of(picture.lines, [](const fabric::Line& line) {
         return all_of(line.cables, [](const fabric::TopologyEnd& end) {
           return Json::array({end.element, end.port});
         });
       })}};
}

std::string dumped(const Json& json) {
  return fabric::json_in_html(json.dump(-1, ' ', true, Json::error_handler_t::replace));
}

}  // namespace

Json box_state(const fabric::Box& box) {
  return {{"c", box_class(box)}, {"n", box.name}, {"t", box.texts}};
}

Json line_state(const fabric::Line& line) {
  return {{"c", line_class(line)},
          {"w", std::round(line_width(line) * 10) / 10},
          {"n", line.note},
          {"t", line.title}};
}

Json element_state(const fabric::ShownElement& element) {
  Json programs = Json::array();
  for (const fabric::ShownProgram& program : element.programs) {
    programs.push_back(fmt::format("{} (pid {})", clean_text(program.name), program.pid));
  }
  Json ports = Json::array();
  for (const fabric::ShownPort& port : element.ports) ports.push_back(port_json(port));
  const char* kind = element.is_ideal ? "ideal network" : element.is_switch ? "switch" : "adapter";
  return {{"k", kind},
          {"n", clean_text(element.is_ideal ? "ideal network" : element.name)},
          {"g", element.is_ideal ? "" : fmt::format("{:#018x}", element.guid)},
          {"node", clean_text(element.node)},
          {"l", element.lid},
          {"there", element.is_there},
          {"pr", std::move(programs)},
          {"p", std::move(ports)}};
}

Json page_state(const fabric::Picture& picture, const fabric::ShownSubnet& subnet) {
  return {{"summary", picture.summary},
          {"hottest", hottest_text(picture)},
          {"boxes", all_of(picture.boxes, box_state)},
          {"lines", all_of(picture.lines, line_state)},
          {"elements", all_of(subnet.elements, element_state)}};
}

std::string page_of(const fabric::Picture& picture, const Json& state, const PageUse& use) {
  const std::string policy = fmt::format(
      "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src {1}; "
      "base-uri 'none'; form-action 'none'",
      use.nonce, use.layout != 0 ? "'self'" : "'none'");
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{title}</title>\n<style nonce=\"{nonce}\">{svg_style}{style}</style>\n</head>\n"
      "<body data-layout=\"{layout}\" data-version=\"{version}\">\n"
      "<header><input id=\"search\" type=\"search\" placeholder=\"name, GUID, LID or program\" "
      "aria-label=\"search\"><button id=\"in\" title=\"zoom in\">+</button>"
      "<button id=\"out\" title=\"zoom out\">&minus;</button>"
      "<button id=\"whole\" title=\"the whole picture\">whole</button>"
      "<span id=\"found\"></span><span id=\"news\" role=\"status\"></span></header>\n"
      "<main id=\"stage\">{svg}</main>\n<aside id=\"facts\" hidden></aside>\n"
      "<script type=\"application/json\" id=\"structure\">{structure}</script>\n"
      "<script type=\"application/json\" id=\"state\">{state}</script>\n"
      "<script nonce=\"{nonce}\">{script}</script>\n</body>\n</html>\n",
      fmt::arg("policy", policy), fmt::arg("title", fabric::xml_text(use.title)),
      fmt::arg("nonce", use.nonce), fmt::arg("svg_style", fabric::kSvgStyle),
      fmt::arg("style", kPageStyle), fmt::arg("layout", use.layout),
      fmt::arg("version", use.version),
      fmt::arg("svg", svg_of(picture, use.title, fabric::SvgUse::Page)),
      fmt::arg("structure", dumped(structure_json(picture))), fmt::arg("state", dumped(state)),
      fmt::arg("script", kPageScript));
}

}  // namespace ib::softib
