// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Names of which one process of a network namespace has each: abstract AF_UNIX addresses. All users
// see them, and the kernel frees them with their owner, however that ends.
#pragma once

#include "platform/control_channel.h"

#include <span>
#include <string>
#include <vector>

namespace ib::os {

class NameClaims {
 public:
  // All names or none. Returns AlreadyExists if one has an owner, else the error of the system, in
  // words.
  Status claim(std::span<const std::string> names, std::string& reason);

 private:
  std::vector<platform::NativeHandle> sockets_;
};

}  // namespace ib::os
