// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// `softib topology -o FILE` and `--serve`: pictures of a running fabric.
#pragma once

#include "softib/pages/control_client.h"

#include <cstdint>
#include <string>

namespace ib::softib {

struct PictureRequest {
  std::string fabric;
  std::string file;      // ends with .svg, .html or .dot
  std::string from, to;  // of the way to show; both or none
};

// Throws CliError(Usage).
void check_picture(const PictureRequest& request, bool is_served);
void write_picture(ControlClient& client, const PictureRequest& request);
// Ends with the fabric.
void serve_picture(const PictureRequest& request, std::uint16_t port);

}  // namespace ib::softib
