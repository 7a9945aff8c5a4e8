// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Hostile user mode, as the drivers meet it: several processes that open HCAs and send any control
// code with any buffer, write anything into device memory, stop in the middle of a work request,
// close files while requests are under way, and die.
//
// Each step takes a byte of the input or a few. No process reaches an object of another file; a
// request is completed once, in a form that its code allows; the last process leaves nothing
// behind.
#include "drivers/soft_hca/lifetime/process_slots.h"
#include "drivers/test/hostile_tree_request_test.h"
#include "drivers/test/scribble_test.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <list>

namespace ib::drivers::test {
namespace {

constexpr std::uint64_t kMaxMemory = hca::kHeapStep;  // so that the heap grows once at most
constexpr std::size_t kMaxClients = 4;
constexpr std::size_t kMaxFiles = 3;
constexpr std::size_t kMaxFlights = 32;

void require(bool holds, const char* what, std::uint32_t code = 0) {
  if (holds) return;
  std::fprintf(stderr, "%s (request %u)\n", what, code);
  std::abort();
}

// How often a file holds an object, by kind and handle.
using Holdings = std::array<std::map<std::uint32_t, std::uint32_t>, kAllKinds>;

std::map<std::uint32_t, std::uint32_t>& of(Holdings& holdings, Kind kind) {
  return holdings[static_cast<std::size_t>(kind)];
}

struct Client;

struct File {
  std::unique_ptr<io::FileObject> object;
  Holdings holds;
  bool closing = false;  // Close has been requested
  bool close_sent = false;
};

// A connection and its process.
struct Client {
  io::Client who;
  std::unique_ptr<File> zero;
  std::list<std::unique_ptr<File>> files;
  std::uint32_t last_number = 0;
  bool ending = false;
};

// A request under way.
struct Flight {
  Request request;
  Shape shape;
  Client* client = nullptr;
  File* file = nullptr;
  bool may_succeed = true;        // by the handles in its buffer
  std::unique_ptr<File> opening;  // Create: becomes one of the client's
};

class World {
 public:
  World() : bench_(kMaxMemory) {
    for (int i = 0; i < 2; ++i) {
      Client& client = connect();
      attach(client);
      open_file(client, 0);
    }
  }
  ~World() { end(); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void step(FuzzInput& in) {
    const std::uint8_t dice = in.byte();
    if (dice < 170) {
      send_to_hca(in);
    } else if (dice < 195) {
      send_to_root(in);
    } else if (dice < 206) {
      connect_or_open(in);
    } else if (dice < 214) {
      close_or_exit(in);
    } else if (dice < 222) {
      enter_or_leave(in);
    } else if (dice < 240) {
      scribble(bench_, in, kMaxClients);
    } else if (dice < 248) {
      bench_.executor.advance(std::chrono::microseconds(50 << in.byte() % 16));
    } else if (dice < 250) {
      send_about_the_tree(in);
    } else {
      cancel(in);
    }
    settle();
  }

 private:
  // --- processes and files ---

  Client& connect() {
    Client& client = *clients_.emplace_back(std::make_unique<Client>());
    client.who.session = ++last_client_;
    client.who.pid = static_cast<std::uint32_t>(100 + last_client_);
    bench_.host.alive.insert(client.who.pid);
    client.zero = std::make_unique<File>();
    client.zero->object =
        std::make_unique<io::FileObject>(bench_.root->device(), 0, client.who, nullptr);
    const Flight& flight = send(client, *client.zero, {}, {}, io::Major::Create);
    require(flight.request.irp.status == Status::Ok, "a connection was refused");
    settle();
    return client;
  }

  void attach(Client& client) {
    control::AttachIn in;
    put_text(in.program, "fuzz");
    send(client, *client.zero, {Code::Attach}, bytes_of(in));
    settle();
  }

  void open_file(Client& client, std::uint32_t hca) {
    if (client.files.size() >= kMaxFiles) return;
    std::string reason;
    const auto ca = bench_.tree->resolve(hca == 0 ? "node0" : "node1", "\\Device\\ibal", reason);
    if (!ca) return;
    auto file = std::make_unique<File>();
    auto* zero = client.zero->object.get();
    file->object = std::make_unique<io::FileObject>(**ca, ++client.last_number, client.who, zero);
    File& opened = *file;
    send(client, opened, {}, {}, io::Major::Create).opening = std::move(file);
    settle();  // completes, unless its HCA sleeps
  }

  void connect_or_open(FuzzInput& in) {
    const std::uint8_t which = in.byte();
    if (which < 64 && clients_.size() < kMaxClients) {
      (void)connect();
    } else if (Client* client = some_client(in)) {
      which < 128 ? attach(*client) : open_file(*client, which % 2);
    }
  }

  void close_or_exit(FuzzInput& in) {
    Client* client = some_client(in);
    if (client == nullptr) return;
    const std::uint8_t which = in.byte();
    if (which < 100) return exit(*client, which % 4 != 0);
    if (File* file = some_file(*client, which)) {
      file->closing = true;
      cancel_all([file](const Flight& f) { return f.file == file; });
    }
  }

  // As in softibd when the socket closes: because the process died, or because it closed it.
  void exit(Client& client, bool dies) {
    client.ending = true;
    if (dies) bench_.host.alive.erase(client.who.pid);
    bench_.root->disconnect(*client.zero->object);
    cancel_all([&client](const Flight& f) { return f.client == &client; });
  }

  // --- requests ---

  Flight& send(Client& client, File& file, const Shape& shape, std::vector<std::byte> in,
               io::Major major = io::Major::DeviceControl, std::size_t room = 4096) {
    Flight& flight = *flights_.emplace_back(std::make_unique<Flight>());
    flight.shape = shape;
    flight.client = &client;
    flight.file = &file;
    flight.request.in = std::move(in);
    io::Irp& irp = flight.request.irp;
    irp.major = major;
    irp.requestor_mode = io::RequestorMode::User;
    irp.code = number_of(shape.code);
    irp.file = file.object.get();
    irp.in = flight.request.in;
    irp.out = std::span(flight.request.out).first(room);
    if (gives_handles_) {
      for (platform::NativeHandle& handle : irp.in_handles) handle = FakeHost::handle();
    }
    flight.may_succeed = major != io::Major::DeviceControl ||
                         Ownership([&](Kind kind, std::uint32_t handle) {
                           return of(holder(client, file, kind).holds, kind).contains(handle);
                         }).of_request(shape, flight.request.in);
    io::call_driver(file.object->device(), irp.start(&Request::on_done, &flight.request));
    return flight;
  }

  // Channels and backings belong to the process.
  static File& holder(Client& client, File& file, Kind kind) {
    return kind == kChannel || kind == kBacking ? *client.zero : file;
  }

  void send_to_hca(FuzzInput& in) {
    Client* client = some_client(in);
    File* file = client != nullptr ? some_file(*client, in.byte()) : nullptr;
    if (file == nullptr || flights_.size() >= kMaxFlights) return;
    const Shape& shape = in.one_of(kHcaRequests);
    const Choice choose{in, [&](Kind kind) { return some_handle(in, *client, *file, kind); },
                        [&] { return some_qpn(in); }};
    spoil_and_send(in, *client, *file, shape, sensible_request(shape, choose));
  }

  void send_to_root(FuzzInput& in) {
    Client* client = some_client(in);
    if (client == nullptr || flights_.size() >= kMaxFlights) return;
    const Shape& shape = in.one_of(kRootRequests);
    const Choice choose{in,
                        [&](Kind kind) { return some_handle(in, *client, *client->zero, kind); },
                        [&] { return some_qpn(in); }};
    spoil_and_send(in, *client, *client->zero, shape, sensible_root_request(shape, choose));
  }

  void send_about_the_tree(FuzzInput& in) {
    Client* client = some_client(in);
    if (client == nullptr || flights_.size() >= kMaxFlights) return;
    const Shape& shape = in.one_of(kTreeRequests);
    spoil_and_send(in, *client, *client->zero, shape, sensible_tree_request(shape, in));
  }

  // Spoils mostly a byte or two of the buffer, or nothing; sometimes its size, the code, or the
  // room for the answer.
  void spoil_and_send(FuzzInput& in, Client& client, File& file, Shape shape,
                      std::vector<std::byte> bytes) {
    const std::size_t size = bytes.size();
    std::size_t room = 4096;
    const std::uint8_t dice = in.byte();
    if (dice >= 128) {
      for (int i = 0; i <= dice % 3 && !bytes.empty(); ++i) spoil(in, bytes);
    }
    if (dice % 16 == 15)
      bytes.resize(in.byte() % 2 != 0 ? in.byte()
                                      : std::max<std::size_t>(size + in.byte() % 9, 4) - 4);
    if (dice % 32 == 14) room = in.byte();
    if (dice % 32 == 13) shape = shape_of(static_cast<Code>(in.byte() % 90));
    gives_handles_ = dice % 8 != 3;
    Flight& flight = send(client, file, shape, std::move(bytes), io::Major::DeviceControl, room);
    if (size != 0 && flight.request.in.size() != size && shape.code != Code::WaitEvent)
      flight.may_succeed = false;
  }

  static void spoil(FuzzInput& in, std::vector<std::byte>& bytes) {
    static constexpr std::uint64_t kValues[] = {0,
                                                1,
                                                2,
                                                3,
                                                7,
                                                0x7fffffff,
                                                0x80000000,
                                                0xffffffff,
                                                0xffffff,
                                                ~std::uint64_t{0},
                                                std::uint64_t{1} << 63,
                                                hca::place::kHeap,
                                                4096,
                                                65536};
    const std::size_t offset = in.byte() % bytes.size();
    const std::uint8_t how = in.byte();
    const std::size_t width = std::min(std::size_t{1} << how % 4, bytes.size() - offset);
    const std::uint64_t value = how < 64 ? in.number(8) : in.one_of(kValues);
    std::memcpy(bytes.data() + offset, &value, width);
  }

  template <class Which>
  void cancel_all(Which&& which) {
    for (const auto& flight : flights_) {
      if (which(*flight) && !flight->request.done) flight->request.irp.cancel();
    }
  }
  void cancel(FuzzInput& in) {
    if (flights_.empty()) return;
    flights_[in.byte() % flights_.size()]->request.irp.cancel();
  }

  // --- Completions ---

  // Processes the answers and continues work that waited for them.
  void settle() {
    for (std::size_t i = 0; i < flights_.size();) {
      if (!flights_[i]->request.done) {
        ++i;
        continue;
      }
      std::unique_ptr<Flight> flight = std::move(flights_[i]);
      flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
      if (flight->request.irp.major == io::Major::DeviceControl) take_note(*flight);
      if (flight->request.irp.major == io::Major::Close) closed(*flight);
      if (flight->opening != nullptr && flight->request.irp.status == Status::Ok) {
        flight->client->files.push_back(std::move(flight->opening));
      }
    }
    for (const auto& client : clients_) close_files(*client);
  }

  void take_note(const Flight& flight) {
    const io::Irp& irp = flight.request.irp;
    const bool ok = irp.status == Status::Ok;
    require(irp.status != Status::Pending, "a request was answered with Pending", irp.code);
    require(static_cast<std::uint32_t>(irp.status) < kStatusCount, "no such status", irp.code);
    require(irp.out_size <= irp.out.size(), "more output than room", irp.code);
    require(ok == irp.reason.empty(), "an error without a reason, or a reason without an error",
            irp.code);
    require(ok || irp.out_size == 0, "an error with output", irp.code);
    require(!ok || flight.may_succeed, "a handle that is not the sender's was accepted", irp.code);
    if (!ok || flight.file->closing || flight.client->ending) return;
    std::uint32_t first = 0;
    if (irp.in.size() >= sizeof first) std::memcpy(&first, irp.in.data(), sizeof first);
    const Shape& shape = flight.shape;
    if (shape.destroys) {
      auto& held = of(flight.file->holds, shape.named);
      if (--held.at(first) == 0) held.erase(first);
    }
    if (shape.creates == kNone) return;
    const auto made = static_cast<std::uint32_t>(irp.information);
    const bool shared = shape.code == Code::OpenQp || shape.code == Code::OpenXrcd;
    require(shared || !is_known(shape.creates, made), "a handle was given twice", irp.code);
    ++of(flight.file->holds, shape.creates)[made];
  }

  bool is_known(Kind kind, std::uint32_t handle) {
    return std::any_of(clients_.begin(), clients_.end(), [&](const auto& client) {
      const auto has = [&](const auto& file) {
        return !file->closing && of(file->holds, kind).contains(handle);
      };
      return !client->ending &&
             (has(client->zero) || std::any_of(client->files.begin(), client->files.end(), has));
    });
  }

  void closed(const Flight& flight) {
    require(flight.request.irp.status == Status::Ok, "Close failed");
    Client& client = *flight.client;
    if (flight.file == client.zero.get()) {
      std::erase_if(clients_, [&](const auto& c) { return c.get() == &client; });
    } else {
      client.files.remove_if([&](const auto& f) { return f.get() == flight.file; });
    }
  }

  // Sends Close for each file without a request under way, for file 0 after the others.
  void close_files(Client& client) {
    const auto is_idle = [&](const File* file) {
      return std::none_of(flights_.begin(), flights_.end(),
                          [&](const auto& f) { return f->file == file; });
    };
    for (const auto& file : client.files) {
      file->closing |= client.ending;
      if (!file->closing || file->close_sent || !is_idle(file.get())) continue;
      file->close_sent = true;
      send(client, *file, {}, {}, io::Major::Close);
    }
    File& zero = *client.zero;
    const bool opens = std::any_of(flights_.begin(), flights_.end(), [&](const auto& f) {
      return f->client == &client && f->opening != nullptr;
    });
    if (!client.ending || opens || !client.files.empty() || zero.close_sent || !is_idle(&zero))
      return;
    zero.close_sent = true;
    send(client, zero, {}, {}, io::Major::Close);
  }

  // --- device memory ---

  // A thread of a process begins or ends a work request, for which changes have to wait.
  void enter_or_leave(FuzzInput& in) {
    const std::uint8_t which = in.byte();
    hca::ProcessSlot& slot = sure(bench_.arena().slot(which % kMaxClients));
    slot.words_used.store(hca::kThreadsPerSlot);
    slot.threads[which / 64].sequence.fetch_add(1);
  }

  // --- choices ---

  Client* some_client(FuzzInput& in) {
    std::vector<Client*> alive;
    for (const auto& client : clients_) {
      if (!client->ending) alive.push_back(client.get());
    }
    return alive.empty() ? nullptr : alive[in.byte() % alive.size()];
  }
  static File* some_file(Client& client, std::size_t which) {
    std::vector<File*> open;
    for (const auto& file : client.files) {
      if (!file->closing) open.push_back(file.get());
    }
    return open.empty() ? nullptr : open[which % open.size()];
  }
  // Mostly one of the file's own.
  std::uint32_t some_handle(FuzzInput& in, Client& client, File& file, Kind kind) {
    const std::uint8_t dice = in.byte();
    const auto& own = of(holder(client, file, kind).holds, kind);
    if (dice < 200 && !own.empty())
      return std::next(own.begin(), static_cast<std::ptrdiff_t>(dice % own.size()))->first;
    if (dice == 255) return control::kNoIndex;
    if (dice == 254) return static_cast<std::uint32_t>(in.number(4));
    return dice % 8;  // probably of another file
  }
  std::uint32_t some_qpn(FuzzInput& in) {
    const Qp* qp = core().qps.find(2 + in.byte() % 8u);
    return qp != nullptr ? qp->qpn : 0x123456;
  }
  Core& core() { return bench_.core(); }

  // --- The end ---

  void end() {
    for (const auto& client : clients_) {
      if (!client->ending) exit(*client, true);
    }
    // No poster is left, whatever was scribbled into its words.
    for (std::uint32_t slot = 0; slot < hca::kMaxSlots; ++slot) {
      if (core().by_slot[slot] == nullptr) continue;
      for (hca::ThreadWord& word : sure(bench_.arena().slot(slot)).threads) word.sequence.store(0);
    }
    for (int i = 0; i < 1000 && !(clients_.empty() && core().sessions.empty()); ++i) {
      bench_.executor.advance(std::chrono::milliseconds(5));
      settle();
    }
    bench_.executor.advance(std::chrono::seconds(1));  // for devices that are leaving
    require(flights_.empty(), "a request was never answered");
    require(bench_.tree->devices_json().find("\"leaving\": []") != std::string::npos,
            "a device does not leave");
    require(clients_.empty() && core().sessions.empty(), "a process was not let go");
    check_nothing_left();
  }

  void check_nothing_left() {
    require(bench_.objects() == 0, "objects are left");
    for (const Counts& counts : core().counts) {
      for (const std::uint32_t count : counts) require(count == 0, "objects are counted");
    }
    for (const Session* session : core().by_slot) require(session == nullptr, "a slot is taken");
    require(core().later.waiting_for_posters() == 0, "somebody waits for posters");
    // All pieces of the heap have been merged: the whole heap can be allocated as one piece.
    const std::uint64_t bytes = std::min(kMaxMemory, bench_.host.size() - hca::place::kHeap);
    const std::uint64_t size = bench_.host.size();
    std::string reason;
    require(core().memory.heap().used() == 0, "memory is in use");
    if (bytes == 0) return;
    const auto all = core().memory.allocate(bytes, reason);
    require(all && *all == hca::place::kHeap && bench_.host.size() == size, "the heap has holes");
    core().memory.release(*all);
  }

  Bench bench_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Flight>> flights_;
  std::uint64_t last_client_ = 0;
  bool gives_handles_ = true;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr int kSteps = 200;
  FuzzInput in(data, size);
  {
    World world;
    for (int i = 0; i < kSteps && !in.is_over(); ++i) world.step(in);
  }
  require(FakeHost::open_handles == 0, "a descriptor was not closed");
  return 0;
}
}  // namespace ib::drivers::test
