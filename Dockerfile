# ROS 2 Jazzy with contact_sim in a workspace:
#   docker build --tag contact_sim .
#   docker run --rm contact_sim ros2 launch contact_sim stance_demo.launch.py
FROM ros:jazzy-ros-base AS dependencies
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /ws
# The manifest alone: other files change without installing all of this again.
COPY package.xml src/contact_sim/package.xml
# hadolint ignore=DL3008
RUN apt-get update \
    && rosdep update --rosdistro "$ROS_DISTRO" \
    && rosdep install --from-paths src --ignore-src --default-yes \
    && apt-get install --yes --no-install-recommends python3-pip \
    && rm -rf /var/lib/apt/lists/*
# The robots of the catalogue: files only, which have no rosdep key.
RUN pip3 install --break-system-packages --no-cache-dir --no-deps 'example-robot-data>=6.0'

FROM dependencies
COPY . src/contact_sim
RUN source "/opt/ros/$ROS_DISTRO/setup.bash" && colcon build
ENTRYPOINT ["/bin/bash", "-c", "source /ws/install/setup.bash && exec \"$@\"", "--"]
CMD ["ros2", "launch", "contact_sim", "simulation.launch.py"]
