// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/subnet/topology_picture.h"

#include "fabric/picture/dot.h"
#include "fabric/picture/svg.h"
#include "softib/commands/command.h"
#include "softib/pages/fabric_state.h"
#include "softib/picture/graphviz.h"
#include "softib/picture/page.h"
#include "softib/picture/picture_server.h"
#include "softib/picture/subnet_reading.h"
#include "softib/subnet/subnet_request.h"

#include <fmt/format.h>

namespace ib::softib {
namespace {

std::string title_of(const PictureRequest& request) {
  return "fabric " + request.fabric;
}

fabric::ShownSubnet read(ControlClient& client, const PictureRequest& request) {
  fabric::ShownSubnet subnet =
      read_subnet(ask_topology_json(client), ask_state_without_nodes(client));
  if (!request.from.empty()) {
    const std::string path = ask_path(client, request.from, request.to, request.fabric);
    read_route(subnet, parse_answer(path), request.from, request.to);
  }
  return subnet;
}

}  // namespace

void check_picture(const PictureRequest& request, bool is_served) {
  const bool is_drawn = is_served || !request.file.empty();
  if (request.from.empty() != request.to.empty() || (!request.from.empty() && !is_drawn)) {
    throw CliError(Exit::Usage,
                   "--from and --to are the ends of a way in a picture (-o FILE, --serve)\n"
                   "  `softib path FROM TO` writes it as text.");
  }
  const std::string& file = request.file;
  const bool is_known = file.ends_with(".svg") || file.ends_with(".html") || file.ends_with(".dot");
  if (!file.empty() && !is_known) {
    throw CliError(Exit::Usage,
                   fmt::format("-o {}: a picture is a file .svg, .html or .dot", file));
  }
  if (is_served && !file.empty()) {
    throw CliError(Exit::Usage, "-o and --serve exclude each other");
  }
}

void write_picture(ControlClient& client, const PictureRequest& request) {
  const fabric::ShownSubnet subnet = read(client, request);
  fabric::Picture picture = make_picture(subnet);
  if (request.file.ends_with(".dot")) return write_file(request.file, dot_of(picture));
  lay_out(picture);
  if (request.file.ends_with(".svg")) {
    return write_file(request.file, svg_of(picture, title_of(request), fabric::SvgUse::File));
  }
  const Json state = page_state(picture, subnet);
  write_file(request.file, page_of(picture, state, {title_of(request), random_token()}));
}

void serve_picture(const PictureRequest& request, std::uint16_t port) {
  ControlClient client = connect_up(request.fabric);
  LivePicture picture(
      title_of(request), [&] { return read(client, request); }, lay_out);
  ServerUse use;
  use.port = port;
  use.on_ready = [](const std::string& address) {
    print(address + "\n  Ctrl-C ends it; whoever has the address can see the fabric.\n");
  };
  use.check = [&client] { ask_state_without_nodes(client); };
  until_down(request.fabric, true, [&] { serve(picture, use); });
}

}  // namespace ib::softib
