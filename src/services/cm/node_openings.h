// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NodeOpenings: queue pairs 1 of nodes that are being opened, or are open, and what waits for them.
#pragma once

#include "fabric/model.h"
#include "io/irp.h"
#include "services/gsi/gsi.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ib::services {

class NodeOpenings {
 public:
  explicit NodeOpenings(Gsi& gsi) : gsi_(gsi) {}
  NodeOpenings(const NodeOpenings&) = delete;
  NodeOpenings& operator=(const NodeOpenings&) = delete;
  ~NodeOpenings() = default;  // nothing more is called

  // Calls `then` at once or later; if they could not be opened, with the error.
  using OnOpen = std::function<void(Status status, const std::string& reason)>;
  void open(const fabric::Node& node, OnOpen then);

 private:
  struct Opening {
    io::Irp irp;
    bool is_under_way = false;
    bool is_open = false;
    std::vector<OnOpen> waiting;
  };
  static void opened(io::Irp& irp, void* context);

  Gsi& gsi_;
  std::map<const fabric::Node*, Opening> openings_;
};

}  // namespace ib::services
