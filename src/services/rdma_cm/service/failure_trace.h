// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FailureTrace: the lines that the rdma_cm service leaves in the trace, for people, about what did
// not work (`softib trace`). A refusal is told once: by the side that refuses, which has the
// reason, or else by the one that is refused.
#pragma once

#include "services/rdma_cm/addresses/port_table.h"
#include "services/rdma_cm/service/arrival.h"
#include "services/rdma_cm/service/id_table.h"

#include <functional>
#include <string>
#include <string_view>

namespace ib::services::rdma_cm {

class FailureTrace {
 public:
  // `file` is that of the program that the line is about, or nullptr.
  using AddLine = std::function<void(std::string line, const File* file, std::string_view node)>;

  FailureTrace(const fabric::Fabric& fabric, const PortTable& ports, const IdTable& ids,
               AddLine add_line)
      : fabric_(fabric), ports_(ports), ids_(ids), add_line_(std::move(add_line)) {}

  void report(const Id& id, std::string what, std::string_view why = {}) const;
  // A port that another id has. Returns `error`, which goes on to the program.
  Error report_address_in_use(const Id& id, Error error, const EndpointAddress& address) const;
  void report_private_data(const Id& id, std::string_view call, std::size_t size,
                           std::size_t most) const;
  void report_foreign_queue_pair(const Id& id, std::string_view call, std::uint32_t qpn) const;

  // A command of a process that has not opened the file; told once for each file.
  void report_foreign_command(File& file, std::uint32_t pid) const;

  void report_no_listener(const Arrival& arrival) const;
  // The listener has no room for the request: its backlog is full, or its file.
  void report_no_room(const Arrival& arrival, const Id& listener, bool is_backlog_full) const;
  void report_no_answer(const Id& id, const Unanswered& message) const;
  void report_rejection(const Id& id, std::uint16_t reason) const;
  void report_datagram_refusal(const Id& id, std::uint32_t status) const;
  // The other side of a request is refused, but not by the will of its program: the id ends, or
  // rdma_accept has failed. Remembers why, for the line about the refusal.
  void note_end(const Id& id) const;
  void note_failed_accept(const Id& id) const;

 private:
  Id* sender_of(const fabric::Node& at, PortSpace space, const EndpointAddress& origin,
                const EndpointAddress& target) const;
  Id* sender_of(const Arrival& arrival) const;
  Id* sender_of(const Id& request) const;
  void report_refusal(const Id& id, const std::string& text) const;
  void note_refusal(const Id& id, std::string_view how) const;
  const fabric::Port* peer_port_of(const Id& id) const;
  std::string listener_text(const Id& id) const;

  const fabric::Fabric& fabric_;
  const PortTable& ports_;
  const IdTable& ids_;
  AddLine add_line_;
};

}  // namespace ib::services::rdma_cm
