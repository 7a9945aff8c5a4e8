// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// `softib topology --serve`: a page on 127.0.0.1 for the browsers of those who have its token.
//
// One thread does all. A client has a limit for the size of its request, for the time to send it
// and for the time to take the answer; there is one for the number of clients. So a hostile one
// gets no more than these.
#pragma once

#include "softib/picture/live_picture.h"

#include <cstdint>
#include <functional>
#include <string>

namespace ib::softib {

struct ServerUse {
  std::uint16_t port = 0;  // 0: any that is free
  std::function<void(const std::string& address)> on_ready;
  // Throws when the fabric has ended; called every half second.
  std::function<void()> check;
};

// Ends by what refreshing the picture or `check` throws. Throws CliError(Failed) if the port cannot
// be had.
void serve(LivePicture& picture, const ServerUse& use);

// A random text of 32 hexadecimal digits.
std::string random_token();

}  // namespace ib::softib
